package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/secretsync/syncer/pkg/targets"
)

// defaultReplicas is how many Pods the API has a workload want that does not say.
const defaultReplicas = 1

// Workload names a Deployment, StatefulSet or DaemonSet.
type Workload struct {
	Kind            string // "deployment", "statefulset" or "daemonset"
	Namespace, Name string
}

func (w Workload) String() string { return w.Kind + "/" + w.Name }

// PodTemplate is what of a workload decides whether its Pods are to be made
// anew.
type PodTemplate struct {
	// Annotations are those that the workload's Pods get.
	Annotations map[string]string
	// Created is when the workload was.
	Created time.Time
	// Version is the workload's resource version.
	Version string
}

// PodTemplate reads a workload's.
func (c *Client) PodTemplate(ctx context.Context, w Workload) (PodTemplate, error) {
	state, err := c.workload(ctx, w)
	return PodTemplate{Annotations: state.template.Annotations, Created: state.meta.CreationTimestamp.Time, Version: state.meta.ResourceVersion}, err
}

// Rollout is how far a workload has come with its Pods.
type Rollout struct {
	// Selector matches the workload's Pods.
	Selector labels.Selector
	// Complete: all Pods that it is to have are there and available, and are made
	// from its present template.
	Complete bool
}

// Rollout reads a workload's.
func (c *Client) Rollout(ctx context.Context, w Workload) (Rollout, error) {
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

// workload is what the kinds of workloads have in common.
type workload struct {
	meta     metav1.ObjectMeta
	template corev1.PodTemplateSpec
	selector *metav1.LabelSelector
	complete bool
}

func (c *Client) workload(ctx context.Context, w Workload) (state workload, err error) {
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
		return workload{}, fmt.Errorf("reading %s of namespace %s: %w", w, w.Namespace, err)
	}
	return state, nil
}

// Annotate sets annotations of a workload's Pod template and leaves all others.
// When one of them is new or differs, the workload makes its Pods anew. The error
// is a conflict, and nothing is written, if the workload no longer has the resource
// version.
func (c *Client) Annotate(ctx context.Context, w Workload, version string, annotations map[string]string) error {
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
		return fmt.Errorf("annotating the pods of %s of namespace %s: %w", w, w.Namespace, err)
	}
	return nil
}
