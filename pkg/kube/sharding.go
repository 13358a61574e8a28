package kube

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	"github.com/secretsync/syncer/internal/brief"
	"github.com/secretsync/syncer/internal/wake"
)

// claimsInterval is the time between reads of the selectors of other Deployments.
const claimsInterval = 10 * time.Second

// Division decides which namespaces this process serves, by a label selector. Each
// Deployment publishes its selector in its Lease. The labels of a namespace and the Leases
// alone decide (decision 062). A nil Division serves what the configuration lists.
type Division struct {
	client           *Client
	namespace, lease string // of this Deployment
	reporter         DivisionReporter
	log              *zap.Logger
	wake             wake.Wake

	mu      sync.Mutex
	known   bool
	why     error    // why it is not known
	served  []string // in ascending order
	remarks []string // on namespaces that an older Lease has
}

// DivisionReporter is a Reporter that is also called with limitations of a subject that
// works.
type DivisionReporter interface {
	Reporter
	Remark(subject string, err error)
}

// NewDivision returns the division of the Deployment that holds a Lease. It decides on all
// writes of the client, so it must be called before the first request.
func (c *Client) NewDivision(namespace, lease string, reporter DivisionReporter, log *zap.Logger) *Division {
	d := &Division{client: c, namespace: namespace, lease: lease, reporter: reporter, log: log}
	c.Guard(d.checkOwner)
	return d
}

// checkOwner returns why nothing may be written in a namespace now. It reads the labels
// and the Leases at each call, so a watch that lags causes no write. Each write carries
// the resource version of an earlier read. If the new owner wrote in between, the write
// conflicts.
func (d *Division) checkOwner(ctx context.Context, namespace string) error {
	labels, err := d.client.NamespaceLabels(ctx, namespace)
	if err != nil {
		return unknownOwner(err)
	}
	claims, err := d.client.Claims(ctx, d.namespace)
	if err != nil {
		return unknownOwner(err)
	}
	if Owner(claims, labels) != d.lease {
		return fmt.Errorf("not sent: this Deployment serves the namespace %s no longer", namespace)
	}
	return nil
}

// unknownOwner hides that an error is an answer of the API server, because it does not
// answer the write.
func unknownOwner(err error) error {
	return fmt.Errorf("not sent: the owner of the namespace is unknown: %v", err)
}

// Run follows the namespaces and the Leases until ctx ends. It calls apply when the served
// namespaces have changed.
func (d *Division) Run(ctx context.Context, apply func() error) {
	if d == nil {
		return
	}
	d.set(func() { d.known, d.why, d.served, d.remarks = false, nil, nil, nil })
	namespaces := d.client.WatchNamespaces(d)
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
		claims, err := d.client.Claims(ctx, d.namespace)
		if err == nil {
			changed = d.divide(namespaces.Stored(), claims) || changed
		}
		if err == nil && changed {
			err = apply()
			changed = err != nil
		}
		if ctx.Err() == nil {
			d.reporter.Report("selectors of other Deployments", err)
			d.set(func() { d.known, d.why = d.known || err == nil, err })
		}
		return claimsInterval
	})
}

// divide decides which namespaces this process serves, and reports whether they changed.
func (d *Division) divide(namespaces []*metav1.PartialObjectMetadata, claims []Claim) (changed bool) {
	var served, unserved, remarks []string
	own := slices.DeleteFunc(slices.Clone(claims), func(c Claim) bool { return c.Lease != d.lease })
	for _, n := range namespaces {
		owner, had := Owner(claims, n.Labels), d.Serves(n.Name)
		switch {
		case owner == d.lease:
			served = append(served, n.Name)
		case had && owner == "":
			unserved = append(unserved, n.Name)
		case Owner(own, n.Labels) != "":
			remarks = append(remarks, fmt.Sprintf("not served: the selector of the older Lease %s also matches the namespace %s", owner, n.Name))
		}
	}
	slices.Sort(served)
	slices.Sort(unserved)
	slices.Sort(remarks)
	before := d.served
	d.set(func() { d.served, d.remarks = served, remarks })
	logNamespaces(d.log.Info, "Namespaces joined", without(served, before))
	logNamespaces(d.log.Info, "Namespaces left", without(without(before, served), unserved))
	logNamespaces(d.log.Warn, "No Deployment serves these namespaces any more; their Secrets stay as they are", unserved)
	var conflict error
	if len(remarks) > 0 {
		conflict = brief.ListError("selectors overlap", remarks)
	}
	d.reporter.Remark("selector", conflict)
	return !slices.Equal(before, served)
}

// without returns the names that are not among others, which are in ascending order.
func without(names, others []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		_, among := slices.BinarySearch(others, name)
		return among
	})
}

// logNamespaces logs a message about some namespaces.
func logNamespaces(log func(string, ...zap.Field), message string, namespaces []string) {
	if len(namespaces) > 0 {
		log(message, zap.String("namespaces", brief.List(namespaces)))
	}
}

func (d *Division) set(change func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change()
}

// Serves reports whether this process serves a namespace, as far as it knows.
func (d *Division) Serves(namespace string) (is bool) {
	if d == nil {
		return true
	}
	d.set(func() { _, is = slices.BinarySearch(d.served, namespace) })
	return is
}

// Served returns the namespaces that this process serves, in ascending order. Of a nil
// Division it returns those that the configuration lists.
func (d *Division) Served(listed []string) []string {
	if d != nil {
		d.set(func() { listed = d.served })
	}
	return listed
}

// Ready returns an error until the served namespaces are known. The remarks name those
// that an older Lease has.
func (d *Division) Ready() (remarks []string, err error) {
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

// Put implements Handler.
func (d *Division) Put(_, _ *metav1.PartialObjectMetadata) { d.wake.Rouse() }

// Gone implements Handler.
func (d *Division) Gone(_, _ string) { d.wake.Rouse() }

// Report implements Handler.
func (d *Division) Report(err error) {
	if err != nil {
		err = fmt.Errorf("kubernetes.namespaceSelector must watch all namespaces: %w", err)
	}
	d.set(func() { d.why = err })
	d.reporter.Report("watch of namespaces", err)
}

// Remark implements Handler.
func (d *Division) Remark(err error) { d.reporter.Remark("watch of namespaces", err) }

// selectorAnnotation is the annotation of a Lease with the selector of the namespaces that
// its holder serves.
const selectorAnnotation = "conjur.org/namespace-selector"

// claimLasts is how long a claim counts after the last renewal of its Lease. It is longer
// than the clocks of two nodes may differ.
const claimLasts = 10 * time.Minute

// Claim says which namespaces a Deployment serves: those with labels that the selector
// matches, unless an earlier claim matches them too.
type Claim struct {
	Lease    string // its name
	Selector labels.Selector
}

// Claims returns the claims that the Leases of a namespace publish; that of the oldest
// Lease comes first. Claims of Deployments that have not run for ten minutes are omitted.
func (c *Client) Claims(ctx context.Context, namespace string) ([]Claim, error) {
	list, err := c.Coordination.Leases(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, explain("listing the leases of namespace "+namespace, err, right{namespace, "leases.coordination.k8s.io", "list"})
	}
	return claimsOf(list.Items), nil
}

func claimsOf(leases []coordinationv1.Lease) (claims []Claim) {
	slices.SortFunc(leases, func(a, b coordinationv1.Lease) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	for _, l := range leases {
		text, published := l.Annotations[selectorAnnotation]
		selector, err := labels.Parse(text)
		if published && err == nil && time.Since(ptr.Deref(l.Spec.RenewTime, metav1.MicroTime{}).Time) < claimLasts {
			claims = append(claims, Claim{l.Name, selector})
		}
	}
	return claims
}

// Owner returns the Lease of the Deployment that serves a namespace with the labels; "" if
// there is none.
func Owner(claims []Claim, of map[string]string) (lease string) {
	for _, claim := range claims {
		if claim.Selector.Matches(labels.Set(of)) {
			return claim.Lease
		}
	}
	return ""
}

// NamespaceLabels reads the labels of a namespace.
func (c *Client) NamespaceLabels(ctx context.Context, name string) (map[string]string, error) {
	found, err := c.Core.Namespaces().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, explain("reading the namespace "+name, err, right{"", "namespaces", "get"})
	}
	return found.Labels, nil
}

// WatchNamespaces returns a Watch of all namespaces. It stores their labels.
func (c *Client) WatchNamespaces(h Handler[*metav1.PartialObjectMetadata]) *Watch[*metav1.PartialObjectMetadata] {
	w := &Watch[*metav1.PartialObjectMetadata]{log: c.log, handler: h}
	w.inform("namespaces", namespaceAPI{selected{c: c, resource: "namespaces"}}, func(o any) (any, error) {
		if n, ok := o.(*corev1.Namespace); ok {
			return labelsOf(n), nil
		}
		return o, nil
	})
	return w
}

// namespaceAPI requests namespaces.
type namespaceAPI struct{ selected }

func (n namespaceAPI) listPage(ctx context.Context, options metav1.ListOptions) (all []*metav1.PartialObjectMetadata, meta metav1.ListMeta, err error) {
	list, err := n.c.Core.Namespaces().List(ctx, options)
	if err != nil {
		return nil, metav1.ListMeta{}, err
	}
	for i := range list.Items {
		all = append(all, labelsOf(&list.Items[i]))
	}
	return all, list.ListMeta, nil
}

func (n namespaceAPI) readAll(ctx context.Context) ([]*metav1.PartialObjectMetadata, error) {
	return pages(ctx, n.listPage)
}

func labelsOf(n *corev1.Namespace) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name: n.Name, UID: n.UID, ResourceVersion: n.ResourceVersion, Labels: n.Labels,
	}}
}

// Guard has f decide on each write to an object in a namespace, except Leases and Events.
// Its error means that the write must not be sent. Guard must be called before the first
// request.
func (c *Client) Guard(f func(ctx context.Context, namespace string) error) { c.term.guard = f }

// guarded returns the namespace of the object that a request writes; "" if no guard
// decides on it.
func guarded(r *http.Request) (namespace string) {
	_, path, _ := strings.Cut(r.URL.Path, "/namespaces/")
	namespace, object, _ := strings.Cut(path, "/")
	if resource, _, _ := strings.Cut(object, "/"); resource == "" || resource == "events" {
		return ""
	}
	return namespace
}
