package kube

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// WatchSecrets makes a Watch on the Secrets with the ManagedLabel in a
// namespace, or in all for "". With a name it is on that one Secret, whatever
// its labels: this is permitted also to a role that names the Secret.
func (c *Client) WatchSecrets(namespace, name string, h Handler[Source]) *Watch[Source] {
	secrets := c.Core.Secrets(namespace)
	narrow := narrower(name, ManagedLabel+"="+ManagedValue)
	list := func(ctx context.Context, options metav1.ListOptions) ([]runtime.Object, metav1.ListMeta, error) {
		page, err := secrets.List(ctx, narrow(options))
		if err != nil {
			return nil, metav1.ListMeta{}, err
		}
		return objects(page.Items), page.ListMeta, nil
	}
	open := func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
		return secrets.Watch(ctx, narrow(options))
	}
	convert := func(o runtime.Object) (Source, *metav1.ObjectMeta, error) {
		s, ok := o.(*corev1.Secret)
		if !ok {
			return Source{}, nil, fmt.Errorf("a %T came where secrets are watched", o)
		}
		return c.strip(s), &s.ObjectMeta, nil
	}
	return newWatch(c.log, "secrets", list, open, convert, h)
}

// Texts is what is of interest in a ConfigMap.
type Texts struct {
	Namespace, Name string
	// Data is the text under each of the keys asked for that there is.
	Data map[string]string
}

// WatchConfigMap makes a Watch on the text that one ConfigMap has under the
// keys that wanted tells.
func (c *Client) WatchConfigMap(namespace, name string, wanted func(key string) bool, h Handler[Texts]) *Watch[Texts] {
	maps := c.Core.ConfigMaps(namespace)
	narrow := narrower(name, "")
	list := func(ctx context.Context, options metav1.ListOptions) ([]runtime.Object, metav1.ListMeta, error) {
		page, err := maps.List(ctx, narrow(options))
		if err != nil {
			return nil, metav1.ListMeta{}, err
		}
		return objects(page.Items), page.ListMeta, nil
	}
	open := func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
		return maps.Watch(ctx, narrow(options))
	}
	convert := func(o runtime.Object) (Texts, *metav1.ObjectMeta, error) {
		m, ok := o.(*corev1.ConfigMap)
		if !ok {
			return Texts{}, nil, fmt.Errorf("a %T came where configmaps are watched", o)
		}
		return texts(m, wanted), &m.ObjectMeta, nil
	}
	return newWatch(c.log, "configmaps", list, open, convert, h)
}

// ConfigMap reads the text that a ConfigMap has under the keys that wanted
// tells.
func (c *Client) ConfigMap(ctx context.Context, namespace, name string, wanted func(key string) bool) (Texts, error) {
	m, err := c.Core.ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return Texts{}, fmt.Errorf("reading configmap %s/%s: %w", namespace, name, err)
	}
	return texts(m, wanted), nil
}

func texts(m *corev1.ConfigMap, wanted func(string) bool) Texts {
	t := Texts{Namespace: m.Namespace, Name: m.Name, Data: map[string]string{}}
	for key, text := range m.Data {
		if wanted(key) {
			t.Data[key] = text
		}
	}
	return t
}

// narrower lets the API server select: one object by its name, or else by a
// label.
func narrower(name, label string) func(metav1.ListOptions) metav1.ListOptions {
	return func(options metav1.ListOptions) metav1.ListOptions {
		if name != "" {
			options.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
		} else {
			options.LabelSelector = label
		}
		return options
	}
}

func objects[T any, P interface {
	*T
	runtime.Object
}](items []T) []runtime.Object {
	all := make([]runtime.Object, len(items))
	for i := range items {
		all[i] = P(&items[i])
	}
	return all
}
