package consumers

import (
	"errors"

	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/targets/definitions"
)

// parsed is the parsed form of a Config.
type parsed struct {
	urls      []string
	pods      []definitions.Endpoint // of workloads
	restarted []targets.Workload     // without their namespace
	cronJob   string                 // its name
}

// asks reports whether there is anything to observe besides elapsed time.
func (p parsed) asks() bool { return len(p.urls)+len(p.pods)+len(p.restarted) > 0 }

func parse(c Config) (p parsed, err error) {
	var errs []error
	for _, text := range c.Ask {
		e, err := definitions.ParseEndpoint(text)
		switch {
		case err != nil:
			errs = append(errs, err)
		case e.URL != "":
			p.urls = append(p.urls, e.URL)
		default:
			p.pods = append(p.pods, e)
		}
	}
	for _, text := range c.Restarted {
		names, err := definitions.ParseWorkloads(text)
		if errs = append(errs, err); err != nil {
			continue
		}
		for _, name := range names {
			p.restarted = append(p.restarted, targets.WorkloadIn("", name))
		}
	}
	if c.Migrate != "" {
		p.cronJob, err = definitions.ParseCronJob(c.Migrate)
		errs = append(errs, err)
	}
	if c.Cluster == nil && len(p.pods)+len(p.restarted)+len(p.cronJob) > 0 {
		errs = append(errs, errors.New("workloads and CronJobs need a cluster; where there is none, name the URLs of the consumers"))
	}
	return p, errors.Join(errs...)
}
