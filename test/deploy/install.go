package deploy

import (
	"bytes"
	"context"
	"strconv"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

// Cluster is a control plane that takes objects of any kind.
type Cluster struct {
	client  dynamic.Interface
	mapper  meta.RESTMapper
	version *version.Info
}

// Connect asks the control plane which kinds it knows.
func Connect(t testing.TB, config *rest.Config) *Cluster {
	t.Helper()
	config = rest.CopyConfig(config)
	config.WarningHandler = rest.NoWarnings{}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	asked, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	groups, err := restmapper.GetAPIGroupResources(asked)
	if err != nil {
		t.Fatal(err)
	}
	version, err := asked.ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	return &Cluster{client, restmapper.NewDiscoveryRESTMapper(groups), version}
}

// Version is the API server's, such as 1.36.
func (c *Cluster) Version() string { return c.version.Major + "." + c.version.Minor }

// NeedSupport skips a test if the API server is older than 1.36, and the objects use what
// Kubernetes has since then: a MutatingAdmissionPolicy, or a restart of all containers.
func (c *Cluster) NeedSupport(t testing.TB, objects []*unstructured.Unstructured) {
	t.Helper()
	if minor, err := strconv.Atoi(c.version.Minor); err != nil || minor >= 36 {
		return
	}
	for _, o := range objects {
		text, err := o.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		for _, feature := range []string{"MutatingAdmissionPolicy", "RestartAllContainers"} {
			if bytes.Contains(text, []byte(`"`+feature+`"`)) {
				t.Skipf("the API server %s does not know %s of %s %s", c.version, feature, o.GetKind(), o.GetName())
			}
		}
	}
}

// Create creates an object. If the object names no namespace, it uses this one. An unknown
// field is an error.
func (c *Cluster) Create(ctx context.Context, namespace string, o *unstructured.Unstructured, dryRun bool) (*unstructured.Unstructured, error) {
	kind := o.GroupVersionKind()
	mapping, err := c.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, err
	}
	options := metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict}
	if dryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		return c.client.Resource(mapping.Resource).Create(ctx, o, options)
	}
	if own := o.GetNamespace(); own != "" {
		namespace = own
	}
	return c.client.Resource(mapping.Resource).Namespace(namespace).Create(ctx, o, options)
}

// Upgrade applies all objects of a release that is installed, as Helm does.
func (c *Cluster) Upgrade(t testing.TB, r Release) {
	t.Helper()
	for _, o := range r.Objects(t) {
		kind := o.GroupVersionKind()
		mapping, err := c.mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil {
			t.Fatal(err)
		}
		resource := dynamic.ResourceInterface(c.client.Resource(mapping.Resource))
		if mapping.Scope.Name() != meta.RESTScopeNameRoot {
			resource = c.client.Resource(mapping.Resource).Namespace(o.GetNamespace())
		}
		if _, err := resource.Apply(t.Context(), o.GetName(), o, metav1.ApplyOptions{FieldManager: "helm", Force: true}); err != nil {
			t.Fatalf("%s %s: %v", o.GetKind(), o.GetName(), err)
		}
	}
}

// Delete deletes an object without a namespace.
func (c *Cluster) Delete(ctx context.Context, o *unstructured.Unstructured) error {
	kind := o.GroupVersionKind()
	mapping, err := c.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return err
	}
	return c.client.Resource(mapping.Resource).Delete(ctx, o.GetName(), metav1.DeleteOptions{})
}

// Install creates all objects of a release, whose namespaces must exist. The test deletes
// objects without a namespace at its end, because the API server consults each admission
// policy at each write of a Secret.
func (c *Cluster) Install(t testing.TB, r Release) {
	t.Helper()
	objects := r.Objects(t)
	c.NeedSupport(t, objects)
	for _, o := range objects {
		made, err := c.Create(t.Context(), r.Namespace, o, false)
		if err != nil {
			t.Fatalf("%s %s: %v", o.GetKind(), o.GetName(), err)
		}
		if made.GetNamespace() != "" {
			continue
		}
		t.Cleanup(func() {
			if err := c.Delete(context.WithoutCancel(t.Context()), o); err != nil && !apierrors.IsNotFound(err) {
				t.Error(err)
			}
		})
	}
}
