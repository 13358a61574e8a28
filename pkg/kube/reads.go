package kube

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/secretsync/syncer/internal/advice"
	"github.com/secretsync/syncer/internal/brief"
	"github.com/secretsync/syncer/pkg/targets"
)

// pageSize is the maximum number of objects in one page of a list, because each may have
// more than 1 MiB.
const pageSize = 20

// inPages requests a page of a list.
func inPages(options metav1.ListOptions) metav1.ListOptions {
	options.Limit = pageSize
	if options.ResourceVersion == "0" { // the API server would return everything at once
		options.ResourceVersion = ""
	}
	return options
}

// Secret reads one Secret.
func (c *Client) Secret(ctx context.Context, namespace, name string) (*Secret, error) {
	s, err := c.Core.Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, explain("reading secret "+namespace+"/"+name, err, right{namespace, "secrets", "get"})
	}
	return strip(s), nil
}

// Annotations reads the annotations of a Secret.
func (c *Client) Annotations(ctx context.Context, namespace, name string) (map[string]string, error) {
	about, err := c.Metadata(ctx, namespace, name)
	return about.Annotations, err
}

// Metadata reads the metadata of a Secret.
func (c *Client) Metadata(ctx context.Context, namespace, name string) (metav1.ObjectMeta, error) {
	s, err := c.Core.Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return metav1.ObjectMeta{}, explain("reading secret "+namespace+"/"+name, err, right{namespace, "secrets", "get"})
	}
	for _, value := range s.Data { // the values are not needed
		clear(value)
	}
	return s.ObjectMeta, nil
}

// TryWriting asks the API server in a dry run whether it would accept a write of a
// Secret, by patch or by update.
func (c *Client) TryWriting(ctx context.Context, namespace, name string) error {
	secrets, dry := c.Core.Secrets(namespace), []string{metav1.DryRunAll}
	s, err := secrets.Patch(ctx, name, types.MergePatchType, []byte(`{}`), metav1.PatchOptions{DryRun: dry, FieldManager: targets.FieldManager})
	refused := err
	if apierrors.IsForbidden(err) {
		if s, err = secrets.Get(ctx, name, metav1.GetOptions{}); err == nil {
			_, err = secrets.Update(ctx, s, metav1.UpdateOptions{DryRun: dry, FieldManager: targets.FieldManager})
		}
	}
	if s != nil {
		for _, value := range s.Data {
			clear(value)
		}
	}
	if err == nil || apierrors.IsConflict(err) {
		return nil
	}
	return explain("writing secret "+namespace+"/"+name, refused, right{namespace, "secrets", "patch"})
}

// LabelledMetadata reads the metadata of the labelled Secrets of a namespace, "" for all.
func (c *Client) LabelledMetadata(ctx context.Context, namespace string) (all []metav1.ObjectMeta, err error) {
	_, err = pages(ctx, func(ctx context.Context, options metav1.ListOptions) ([]corev1.Secret, metav1.ListMeta, error) {
		options.LabelSelector = managedSelector
		page, err := c.Core.Secrets(namespace).List(ctx, options)
		if err != nil {
			return nil, metav1.ListMeta{}, explain("listing the secrets of "+describeNamespace(namespace), err, right{namespace, "secrets", "list"})
		}
		for _, s := range page.Items {
			all = append(all, s.ObjectMeta)
			for _, value := range s.Data {
				clear(value)
			}
		}
		return nil, page.ListMeta, nil
	})
	return all, err
}

// ConfigMap reads one ConfigMap.
func (c *Client) ConfigMap(ctx context.Context, namespace, name string) (*corev1.ConfigMap, error) {
	m, err := c.Core.ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, explain("reading configmap "+namespace+"/"+name, err, right{namespace, "configmaps", "get"})
	}
	return m, nil
}

// listSecrets returns a page of a list of Secrets.
func (c *Client) listSecrets(ctx context.Context, namespace string, options metav1.ListOptions) ([]*Secret, metav1.ListMeta, error) {
	page, err := c.Core.Secrets(namespace).List(ctx, inPages(options))
	if err != nil {
		return nil, metav1.ListMeta{}, fmt.Errorf("listing the secrets of %s: %w", describeNamespace(namespace), err)
	}
	secrets := make([]*Secret, len(page.Items))
	for i := range page.Items {
		secrets[i] = strip(&page.Items[i])
	}
	return secrets, page.ListMeta, nil
}

// pages reads a list from its first page to its last.
func pages[T any](ctx context.Context, list func(context.Context, metav1.ListOptions) ([]T, metav1.ListMeta, error)) (all []T, err error) {
	for options := (metav1.ListOptions{Limit: pageSize}); ; {
		items, page, err := list(ctx, options)
		if err != nil {
			return nil, err
		}
		all = append(all, items...)
		if options.Continue = page.Continue; options.Continue == "" {
			return all, nil
		}
	}
}

// eachNamespace reads the labelled Secrets of all namespaces, one namespace after the
// other. If the namespaces may not be listed, it uses the known ones. For a namespace
// that may not be read, it returns the stored Secrets and names the namespace in the
// error. If nothing may be read, there are no Secrets.
func (c *Client) eachNamespace(ctx context.Context, known []string, held []*Secret) ([]*Secret, error) {
	namespaces, err := c.namespaces(ctx)
	listed := err == nil
	var problems []error
	if !listed {
		namespaces = known
		problems = append(problems, fmt.Errorf("only these namespaces are known: %s: %w", strings.Join(known, ", "), err))
	}
	all := []*Secret{}
	var read, refused []string
	var refusal error
	for _, namespace := range namespaces {
		api := secretAPI{selected: selected{c, "secrets", Selection{Namespace: namespace}}}
		secrets, err := pages(ctx, api.listPage)
		switch {
		case err == nil:
			all, read = append(all, secrets...), append(read, namespace)
		case apierrors.IsForbidden(err):
			refused, refusal = append(refused, namespace), err
		default:
			problems = append(problems, err)
		}
	}
	if len(refused) > 0 {
		problems = append(problems, &refusedError{refused, fmt.Errorf("%d of %d namespaces are not served, because no Role grants the verb list for their secrets: %s: %w",
			len(refused), len(namespaces), brief.List(refused), refusal)})
	}
	if len(read) == 0 {
		return nil, errors.Join(problems...)
	}
	for _, s := range held {
		if !slices.Contains(read, s.Namespace) && (!listed || slices.Contains(namespaces, s.Namespace)) {
			all = append(all, s)
		}
	}
	return all, errors.Join(problems...)
}

// refusedError means that the Secrets of some namespaces may not be read.
type refusedError struct {
	namespaces []string
	error
}

func (e *refusedError) Unwrap() error { return e.error }

// Refused returns the namespaces whose Secrets may not be read, according to an error of
// a Watch of all namespaces.
func Refused(err error) []string {
	if refused, ok := errors.AsType[*refusedError](err); ok {
		return refused.namespaces
	}
	return nil
}

// namespaces returns the names of all namespaces.
func (c *Client) namespaces(ctx context.Context) ([]string, error) {
	list, err := c.Core.Namespaces().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, explain("listing the namespaces", err, right{"", "namespaces", "list"})
	}
	names := make([]string, len(list.Items))
	for i := range list.Items {
		names[i] = list.Items[i].Name
	}
	return names, nil
}

func describeNamespace(namespace string) string {
	if namespace == "" {
		return "all namespaces"
	}
	return "namespace " + namespace
}

// right is a right that a request needs.
type right struct {
	namespace string // "" for the whole cluster
	resource  string // such as deployments.apps
	verbs     string // such as "list", or "get and patch"
}

// explain returns the error of a failed request with the likely cause and the next step;
// nil if err is nil. The cause follows from the type of the error and never from its text.
func explain(what string, err error, need right) error {
	switch {
	case err == nil:
		return nil
	case apierrors.IsForbidden(err):
		err = advice.Add(err, need.advice())
	case apierrors.IsUnauthorized(err):
		err = advice.Add(err, "check the token of the service account or of the kubeconfig")
	default:
		err = advice.Connection(err, "check the CA certificate of the service account or of the kubeconfig")
	}
	return fmt.Errorf("%s: %w", what, err)
}

// advice says who must grant the right. A 403 to a write may also come from an admission
// policy, in the same form.
func (r right) advice() string {
	role, binding := "a Role of namespace "+r.namespace, "a RoleBinding"
	if r.namespace == "" {
		role, binding = "a ClusterRole", "a ClusterRoleBinding"
	}
	noun := "verb"
	if strings.Contains(r.verbs, " ") {
		noun = "verbs"
	}
	text := fmt.Sprintf("%s must grant the %s %s for %s, with %s to Syncer's service account", role, noun, r.verbs, r.resource, binding)
	if strings.Contains(r.verbs, "patch") || strings.Contains(r.verbs, "create") {
		text += ", and no admission policy may deny the write"
	}
	return text
}
