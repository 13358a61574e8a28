package kube

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
)

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
func (c *Client) Claims(ctx context.Context, namespace string) (claims []Claim, err error) {
	list, err := c.Coordination.Leases(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, explain("listing the leases of namespace "+namespace, err, right{namespace, "leases.coordination.k8s.io", "list"})
	}
	slices.SortFunc(list.Items, func(a, b coordinationv1.Lease) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	for _, l := range list.Items {
		text, published := l.Annotations[selectorAnnotation]
		selector, err := labels.Parse(text)
		if published && err == nil && time.Since(ptr.Deref(l.Spec.RenewTime, metav1.MicroTime{}).Time) < claimLasts {
			claims = append(claims, Claim{l.Name, selector})
		}
	}
	return claims, nil
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

func (n namespaceAPI) list(ctx context.Context, options metav1.ListOptions) (all []*metav1.PartialObjectMetadata, meta metav1.ListMeta, err error) {
	list, err := n.c.Core.Namespaces().List(ctx, options)
	if err != nil {
		return nil, metav1.ListMeta{}, err
	}
	for i := range list.Items {
		all = append(all, labelsOf(&list.Items[i]))
	}
	return all, list.ListMeta, nil
}

func (n namespaceAPI) look(ctx context.Context) ([]*metav1.PartialObjectMetadata, error) {
	return pages(ctx, n.list)
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
