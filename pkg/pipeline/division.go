package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/internal/brief"
	"github.com/secretsync/syncer/internal/wake"
	"github.com/secretsync/syncer/pkg/health"
	"github.com/secretsync/syncer/pkg/kube"
)

// claimsLook is the time between reads of the selectors of other Deployments.
const claimsLook = 10 * time.Second

// division decides which namespaces this process serves, by a label selector. Each
// Deployment publishes its selector in its Lease. The labels of a namespace and the Leases
// alone decide (decision 062). A nil division serves what the configuration lists.
type division struct {
	cluster  *kube.Client
	election config.LeaderElection
	troubles *health.Troubles
	log      *zap.Logger
	wake     wake.Wake

	mu      sync.Mutex
	known   bool
	why     error    // why it is not known
	served  []string // in ascending order
	remarks []string // on namespaces that an older Lease has
}

// newDivision returns a division and lets it decide on all writes of the client.
func newDivision(k config.Kubernetes, cluster *kube.Client, log *zap.Logger) *division {
	d := &division{cluster: cluster, election: k.LeaderElection, troubles: health.NewTroubles(log), log: log}
	cluster.Guard(d.check)
	return d
}

// check returns why nothing may be written in a namespace now. It reads the labels and the
// Leases at each call, so a watch that lags causes no write. Each write carries the
// resource version of an earlier read. If the new owner wrote in between, the write
// conflicts.
func (d *division) check(ctx context.Context, namespace string) error {
	labels, err := d.cluster.NamespaceLabels(ctx, namespace)
	if err != nil {
		return unknownOwner(err)
	}
	claims, err := d.cluster.Claims(ctx, d.election.Namespace)
	if err != nil {
		return unknownOwner(err)
	}
	if kube.Owner(claims, labels) != d.election.Lease {
		return fmt.Errorf("not sent: this Deployment serves the namespace %s no longer", namespace)
	}
	return nil
}

// unknownOwner hides that an error is an answer of the API server, because it does not
// answer the write.
func unknownOwner(err error) error {
	return fmt.Errorf("not sent: the owner of the namespace is unknown: %v", err)
}

// run follows the namespaces and the Leases until ctx ends. It calls apply when the served
// namespaces have changed.
func (d *division) run(ctx context.Context, apply func() error) {
	if d == nil {
		return
	}
	d.set(func() { d.known, d.why, d.served, d.remarks = false, nil, nil, nil })
	namespaces := d.cluster.WatchNamespaces(d)
	var watching sync.WaitGroup
	defer watching.Wait()
	watching.Go(func() { namespaces.Run(ctx) })
	select {
	case <-namespaces.Listed():
	case <-ctx.Done():
		return
	}
	changed := false
	d.wake.Loop(ctx, func() time.Duration {
		claims, err := d.cluster.Claims(ctx, d.election.Namespace)
		if err == nil {
			changed = d.divide(namespaces.Stored(), claims) || changed
		}
		if err == nil && changed {
			err = apply()
			changed = err != nil
		}
		if ctx.Err() == nil {
			d.troubles.Report("selectors of other Deployments", err)
			d.set(func() { d.known, d.why = d.known || err == nil, err })
		}
		return claimsLook
	})
}

// divide decides which namespaces this process serves, and reports whether they changed.
func (d *division) divide(namespaces []*metav1.PartialObjectMetadata, claims []kube.Claim) (changed bool) {
	var served, unserved, remarks []string
	own := slices.DeleteFunc(slices.Clone(claims), func(c kube.Claim) bool { return c.Lease != d.election.Lease })
	for _, n := range namespaces {
		owner, had := kube.Owner(claims, n.Labels), d.serves(n.Name)
		switch {
		case owner == d.election.Lease:
			served = append(served, n.Name)
		case had && owner == "":
			unserved = append(unserved, n.Name)
		case kube.Owner(own, n.Labels) != "":
			remarks = append(remarks, fmt.Sprintf("not served: the selector of the older Lease %s also matches the namespace %s", owner, n.Name))
		}
	}
	slices.Sort(served)
	slices.Sort(unserved)
	slices.Sort(remarks)
	before := d.served
	d.set(func() { d.served, d.remarks = served, remarks })
	say(d.log.Info, "Namespaces joined", without(served, before))
	say(d.log.Info, "Namespaces left", without(without(before, served), unserved))
	say(d.log.Warn, "No Deployment serves these namespaces any more; their Secrets stay as they are", unserved)
	var conflict error
	if len(remarks) > 0 {
		conflict = listed("selectors overlap", remarks)
	}
	d.troubles.Remark("selector", conflict)
	return !slices.Equal(before, served)
}

// without returns the names that are not among others, which are in ascending order.
func without(names, others []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		_, among := slices.BinarySearch(others, name)
		return among
	})
}

// say logs a message about some namespaces.
func say(log func(string, ...zap.Field), message string, namespaces []string) {
	if len(namespaces) > 0 {
		log(message, zap.String("namespaces", brief.List(namespaces)))
	}
}

func (d *division) set(change func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change()
}

// serves reports whether this process serves a namespace, as far as it knows.
func (d *division) serves(namespace string) (is bool) {
	if d == nil {
		return true
	}
	d.set(func() { _, is = slices.BinarySearch(d.served, namespace) })
	return is
}

// of returns the settings with the namespaces that this process serves.
func (d *division) of(k config.Kubernetes) config.Kubernetes {
	if d != nil {
		d.set(func() { k.Namespaces = d.served })
	}
	return k
}

// ready returns an error until the served namespaces are known. The remarks name those
// that an older Lease has.
func (d *division) ready() (remarks []string, err error) {
	if d == nil {
		return nil, nil
	}
	d.set(func() {
		if remarks = d.remarks; !d.known {
			err = errors.Join(errors.New("the namespaces of the selector are not known yet"), d.why)
		}
	})
	return remarks, err
}

// Put implements kube.Handler.
func (d *division) Put(_, _ *metav1.PartialObjectMetadata) { d.wake.Rouse() }

// Gone implements kube.Handler.
func (d *division) Gone(_, _ string) { d.wake.Rouse() }

// Report implements kube.Handler.
func (d *division) Report(err error) {
	if err != nil {
		err = fmt.Errorf("kubernetes.namespaceSelector must watch all namespaces: %w", err)
	}
	d.set(func() { d.why = err })
	d.troubles.Report("watch of namespaces", err)
}

// Remark implements kube.Handler.
func (d *division) Remark(err error) { d.troubles.Remark("watch of namespaces", err) }
