package notify

import (
	"fmt"
	"slices"
	"time"

	"github.com/secretsync/syncer/internal/brief"
	"github.com/secretsync/syncer/pkg/targets"
)

// MissingWorkloadError means that a workload does not exist.
type MissingWorkloadError struct{}

func (*MissingWorkloadError) Error() string { return "there is no such workload" }

// recordMissing records whether a workload that Secrets name exists.
func (r *Restarts) recordMissing(w targets.Workload, secrets []string, gone bool) {
	named := r.missing[w.Namespace]
	if named == nil {
		if r.missing == nil {
			r.missing = map[string]map[string][]string{}
		}
		named = map[string][]string{}
		r.missing[w.Namespace] = named
	}
	for _, secret := range secrets {
		missing := named[secret] // also stores Secrets without missing workloads
		if gone {
			missing = append(missing, w.String())
		}
		named[secret] = missing
	}
}

// dropUnnamed drops the Secrets that no longer name a workload. It ends the report of their
// missing workloads. The next checks of the others report those again.
func (r *Restarts) dropUnnamed(w targets.Workload, d *pendingRestart) {
	if r.Wants == nil {
		return
	}
	for secret := range d.secrets {
		if r.Wants(w, secret) {
			continue
		}
		delete(d.secrets, secret)
		r.recordMissing(w, []string{secret}, false)
		r.mu.Lock()
		for other, p := range r.pending {
			if other.Namespace == w.Namespace && p.secrets[secret] {
				p.missing = false
			}
		}
		r.mu.Unlock()
	}
}

// summarize reports, for each Secret, which of its workloads do not exist. It does so
// when no workload of the namespace is due any more.
func (r *Restarts) summarize(namespace string, now time.Time) {
	r.mu.Lock()
	more := r.turns.Due(namespace, now)
	r.mu.Unlock()
	if more {
		return
	}
	for secret, workloads := range r.missing[namespace] {
		err := absent(namespace, workloads)
		r.Reporter.Report("workloads of the secret "+namespace+"/"+secret, err)
		if err != nil {
			r.Listener.Missing(namespace, secret, err)
		}
	}
	delete(r.missing, namespace)
}

// absent returns an error that names the workloads; nil if there are none.
func absent(namespace string, workloads []string) error {
	if len(workloads) == 0 {
		return nil
	}
	slices.Sort(workloads)
	return fmt.Errorf("there is no %s in the namespace %q; correct or remove the names where restarts are configured", brief.List(workloads), namespace)
}
