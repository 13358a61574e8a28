package consumers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/targets/definitions"
)

const (
	askTime  = 5 * time.Second // time limit for a consumer's answer
	askBytes = 64 << 10        // size limit of an answer
	askers   = 32              // concurrent requests
)

// Holding is a consumer's report about its keys, in the form of keyset's handler.
type Holding struct {
	IDs     []string         `json:"ids"`
	Primary string           `json:"primary"`
	Used    map[string]int64 `json:"used,omitempty"` // seconds ago, by id
}

// newClient returns a client that contacts only the given address. It uses no proxy and
// follows no redirection.
func newClient() *http.Client {
	return &http.Client{
		Timeout:       askTime,
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// podURL returns the URL at which a Pod answers; "" if the Pod has no address yet.
func podURL(ip string, e definitions.Endpoint) string {
	if ip == "" {
		return ""
	}
	return (&url.URL{Scheme: "http", Host: net.JoinHostPort(ip, e.Port), Path: e.Path}).String()
}

// ask asks a consumer which versions of the set it holds. The error contains nothing of
// the answer.
func (c *Consumers) ask(ctx context.Context, to string) (h Holding, err error) {
	if to == "" {
		return h, errors.New("no answer: the Pod has no address yet")
	}
	u, err := url.Parse(to)
	if err != nil {
		return h, err
	}
	query := u.Query()
	query.Set("set", c.Set)
	u.RawQuery = query.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return h, err
	}
	resp, err := c.client.Do(req)
	if err != nil {
		var failed *url.Error
		if errors.As(err, &failed) {
			err = failed.Err
		}
		return h, fmt.Errorf("no answer: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return h, fmt.Errorf("no answer: status %d", resp.StatusCode)
	}
	if json.NewDecoder(io.LimitReader(resp.Body, askBytes)).Decode(&h) != nil {
		return h, errors.New("no answer in the form of keyset's handler")
	}
	return h, nil
}

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
