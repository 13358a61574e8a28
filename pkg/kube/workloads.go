package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/secretsync/syncer/pkg/targets"
)

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
}

// PodTemplate reads a workload's.
func (c *Client) PodTemplate(ctx context.Context, w Workload) (PodTemplate, error) {
	var meta metav1.ObjectMeta
	var pods corev1.PodTemplateSpec
	var err error
	options := metav1.GetOptions{}
	switch w.Kind {
	case "deployment":
		o, e := c.Apps.Deployments(w.Namespace).Get(ctx, w.Name, options)
		if err = e; e == nil {
			meta, pods = o.ObjectMeta, o.Spec.Template
		}
	case "statefulset":
		o, e := c.Apps.StatefulSets(w.Namespace).Get(ctx, w.Name, options)
		if err = e; e == nil {
			meta, pods = o.ObjectMeta, o.Spec.Template
		}
	case "daemonset":
		o, e := c.Apps.DaemonSets(w.Namespace).Get(ctx, w.Name, options)
		if err = e; e == nil {
			meta, pods = o.ObjectMeta, o.Spec.Template
		}
	default:
		err = fmt.Errorf("there is no kind %q; use deployment, statefulset or daemonset", w.Kind)
	}
	if err != nil {
		return PodTemplate{}, fmt.Errorf("reading %s of namespace %s: %w", w, w.Namespace, err)
	}
	return PodTemplate{Annotations: pods.Annotations, Created: meta.CreationTimestamp.Time}, nil
}

// Annotate sets annotations of a workload's Pod template and leaves all others.
// When one of them is new or differs, the workload makes its Pods anew.
func (c *Client) Annotate(ctx context.Context, w Workload, annotations map[string]string) error {
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"template": map[string]any{
		"metadata": map[string]any{"annotations": annotations},
	}}})
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
