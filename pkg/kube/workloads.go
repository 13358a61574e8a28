package kube

import (
	"context"
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/secretsync/syncer/pkg/targets"
)

// defaultReplicas is the API's default number of Pods of a workload.
const defaultReplicas = 1

// PodTemplate reads the Pod template of a workload.
func (c *Client) PodTemplate(ctx context.Context, w targets.Workload) (targets.PodTemplate, error) {
	state, err := c.workload(ctx, w)
	return targets.PodTemplate{Annotations: state.template.Annotations, Created: state.meta.CreationTimestamp.Time, Version: state.meta.ResourceVersion}, err
}

// Rollout is the progress of a workload's rollout.
type Rollout struct {
	// Selector matches the workload's Pods.
	Selector labels.Selector
	// Complete means that all desired Pods exist, are available, and were made from the
	// present template.
	Complete bool
}

// Rollout reads the rollout of a workload.
func (c *Client) Rollout(ctx context.Context, w targets.Workload) (Rollout, error) {
	state, err := c.workload(ctx, w)
	if err != nil {
		return Rollout{}, err
	}
	selector, err := metav1.LabelSelectorAsSelector(state.selector)
	if err != nil {
		return Rollout{}, fmt.Errorf("the selector of %s of namespace %s: %w", w, w.Namespace, err)
	}
	return Rollout{selector, state.complete}, nil
}

// workload is the common part of all kinds of workloads.
type workload struct {
	meta     metav1.ObjectMeta
	template corev1.PodTemplateSpec
	selector *metav1.LabelSelector
	complete bool
}

func (c *Client) workload(ctx context.Context, w targets.Workload) (state workload, err error) {
	options := metav1.GetOptions{}
	switch w.Kind {
	case "deployment":
		var o *appsv1.Deployment
		if o, err = c.Apps.Deployments(w.Namespace).Get(ctx, w.Name, options); err == nil {
			want, is := ptr.Deref(o.Spec.Replicas, defaultReplicas), o.Status
			state = workload{o.ObjectMeta, o.Spec.Template, o.Spec.Selector,
				is.ObservedGeneration >= o.Generation && is.Replicas == want && is.UpdatedReplicas == want && is.AvailableReplicas == want}
		}
	case "statefulset":
		var o *appsv1.StatefulSet
		if o, err = c.Apps.StatefulSets(w.Namespace).Get(ctx, w.Name, options); err == nil {
			want, is := ptr.Deref(o.Spec.Replicas, defaultReplicas), o.Status
			state = workload{o.ObjectMeta, o.Spec.Template, o.Spec.Selector,
				is.ObservedGeneration >= o.Generation && is.Replicas == want && is.UpdatedReplicas == want && is.AvailableReplicas == want}
		}
	case "daemonset":
		var o *appsv1.DaemonSet
		if o, err = c.Apps.DaemonSets(w.Namespace).Get(ctx, w.Name, options); err == nil {
			is := o.Status
			state = workload{o.ObjectMeta, o.Spec.Template, o.Spec.Selector,
				is.ObservedGeneration >= o.Generation && is.UpdatedNumberScheduled == is.DesiredNumberScheduled && is.NumberAvailable == is.DesiredNumberScheduled}
		}
	default:
		err = fmt.Errorf("there is no kind %q; use deployment, statefulset or daemonset", w.Kind)
	}
	if err != nil {
		return workload{}, explain(fmt.Sprintf("reading %s of namespace %s", w, w.Namespace), err, right{w.Namespace, w.Kind + "s.apps", "get"})
	}
	return state, nil
}

// Annotate sets annotations of a workload's Pod template and leaves all others unchanged.
// If one of them is new or differs, the workload replaces its Pods. If the workload no
// longer has the given resource version, nothing is written and the error is a conflict.
func (c *Client) Annotate(ctx context.Context, w targets.Workload, version string, annotations map[string]string) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": version},
		"spec": map[string]any{"template": map[string]any{
			"metadata": map[string]any{"annotations": annotations},
		}},
	})
	if err != nil {
		return err
	}
	options := metav1.PatchOptions{FieldManager: targets.FieldManager}
	switch w.Kind {
	case "deployment":
		_, err = c.Apps.Deployments(w.Namespace).Patch(ctx, w.Name, types.MergePatchType, patch, options)
	case "statefulset":
		_, err = c.Apps.StatefulSets(w.Namespace).Patch(ctx, w.Name, types.MergePatchType, patch, options)
	case "daemonset":
		_, err = c.Apps.DaemonSets(w.Namespace).Patch(ctx, w.Name, types.MergePatchType, patch, options)
	default:
		err = fmt.Errorf("there is no kind %q; use deployment, statefulset or daemonset", w.Kind)
	}
	if err != nil {
		return explain(fmt.Sprintf("annotating the pods of %s of namespace %s", w, w.Namespace), err, right{w.Namespace, w.Kind + "s.apps", "patch"})
	}
	return nil
}

// AnnotateSecret changes one annotation of a Secret to what f makes of it, and leaves all
// else unchanged. A write is valid only for the state that was read. Without the right to
// patch, AnnotateSecret updates.
func (c *Client) AnnotateSecret(ctx context.Context, namespace, name, annotation string, f func(before string) string) (err error) {
	for range mostConflicts {
		if err = c.annotateSecret(ctx, namespace, name, annotation, f); !apierrors.IsConflict(err) {
			break
		}
	}
	return explain("annotating secret "+namespace+"/"+name, err, right{namespace, "secrets", "patch"})
}

func (c *Client) annotateSecret(ctx context.Context, namespace, name, annotation string, f func(before string) string) error {
	secrets := c.Core.Secrets(namespace)
	s, err := secrets.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	defer clearValues(s)
	text := f(s.Annotations[annotation])
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"resourceVersion": s.ResourceVersion, "annotations": map[string]string{annotation: text},
	}})
	if err != nil {
		return err
	}
	after, err := secrets.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: targets.FieldManager})
	if apierrors.IsForbidden(err) {
		metav1.SetMetaDataAnnotation(&s.ObjectMeta, annotation, text)
		after, err = secrets.Update(ctx, s, metav1.UpdateOptions{FieldManager: targets.FieldManager})
	}
	clearValues(after)
	return err
}

func clearValues(s *corev1.Secret) {
	if s != nil {
		for _, value := range s.Data {
			clear(value)
		}
	}
}
