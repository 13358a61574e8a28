package kube

import (
	"context"
	"fmt"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// objectAPI sends requests for the objects of a Selection to the API server.
type objectAPI[T object] interface {
	listPage(context.Context, metav1.ListOptions) ([]T, metav1.ListMeta, error)
	open(context.Context, metav1.ListOptions) (watch.Interface, error)
	// readAll reads all objects with the fewest rights that suffice. With an error, it may
	// return the objects that it could read, and the stored state of the others.
	readAll(context.Context) ([]T, error)
}

// selected requests the objects of one kind that a Selection selects.
type selected struct {
	c        *Client
	resource string
	Selection
}

// open opens a watch and tries only once. The client's Watch methods retry for ten
// seconds. If something on the way then closes the connection, they return an empty
// watch.
func (s selected) open(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	options = s.options(options)
	options.Watch = true
	w, err := s.c.Core.Get().Namespace(s.Namespace).Resource(s.resource).
		VersionedParams(&options, metav1.ParameterCodec).MaxRetries(0).Watch(ctx)
	if err == nil && reflect.TypeOf(w) == reflect.TypeOf(watch.NewEmptyWatch()) {
		return nil, fmt.Errorf("watching %s of %s: the connection was closed before an answer came", s.resource, describeNamespace(s.Namespace))
	}
	return w, err
}

// options selects one object by its name, or else Secrets by the label.
func (s selected) options(options metav1.ListOptions) metav1.ListOptions {
	switch {
	case s.Name != "":
		options.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, s.Name).String()
	case s.resource == "secrets":
		options.LabelSelector = managedSelector
	}
	return options
}

// secretAPI requests Secrets, without their values.
type secretAPI struct {
	selected
	watch *Watch[*Secret]
}

func (s secretAPI) listPage(ctx context.Context, options metav1.ListOptions) ([]*Secret, metav1.ListMeta, error) {
	return s.c.listSecrets(ctx, s.Namespace, s.options(options))
}

func (s secretAPI) readAll(ctx context.Context) ([]*Secret, error) {
	if s.Name != "" {
		return single(s.c.Secret(ctx, s.Namespace, s.Name))
	}
	all, err := pages(ctx, s.listPage)
	if s.Namespace == "" && apierrors.IsForbidden(err) {
		var known []string
		if s.Known != nil {
			known = s.Known()
		}
		return s.c.eachNamespace(ctx, known, s.watch.Stored())
	}
	return all, err
}

// configMapAPI requests ConfigMaps and stores which of them exist.
type configMapAPI struct {
	selected
	see func(types.NamespacedName, *corev1.ConfigMap)
}

func (m configMapAPI) listPage(ctx context.Context, options metav1.ListOptions) (all []*metav1.PartialObjectMetadata, meta metav1.ListMeta, err error) {
	page, err := m.c.Core.ConfigMaps(m.Namespace).List(ctx, m.options(inPages(options)))
	if err != nil {
		return nil, metav1.ListMeta{}, err
	}
	for i := range page.Items {
		all = append(all, m.seen(&page.Items[i]))
	}
	return all, page.ListMeta, nil
}

func (m configMapAPI) readAll(ctx context.Context) ([]*metav1.PartialObjectMetadata, error) {
	if m.Name == "" {
		return pages(ctx, m.listPage)
	}
	found, err := m.c.ConfigMap(ctx, m.Namespace, m.Name)
	if err != nil {
		return single[*metav1.PartialObjectMetadata](nil, err)
	}
	return single(m.seen(found), nil)
}

// seen passes a ConfigMap on and returns the part of it that is stored.
func (m configMapAPI) seen(found *corev1.ConfigMap) *metav1.PartialObjectMetadata {
	m.see(types.NamespacedName{Namespace: found.Namespace, Name: found.Name}, found)
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: found.Namespace, Name: found.Name, UID: found.UID, ResourceVersion: found.ResourceVersion,
	}}
}

// single returns a list with the one object that was requested, if it was found.
func single[T any](o T, err error) ([]T, error) {
	switch {
	case apierrors.IsNotFound(err):
		return []T{}, nil
	case err != nil:
		return nil, err
	}
	return []T{o}, nil
}
