package pipeline

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/secretsync/syncer/pkg/kube"
	"github.com/secretsync/syncer/pkg/notify"
	"github.com/secretsync/syncer/pkg/targets"
)

// workloads is the view of the cluster for restarting workloads.
type workloads struct{ client *kube.Client }

func (c workloads) PodTemplate(ctx context.Context, w targets.Workload) (targets.PodTemplate, bool, error) {
	pods, err := c.client.PodTemplate(ctx, w)
	if apierrors.IsNotFound(err) {
		return pods, false, nil
	}
	return pods, err == nil, err
}

func (c workloads) Annotate(ctx context.Context, w targets.Workload, read targets.PodTemplate, annotations map[string]string) (bool, error) {
	err := c.client.Annotate(ctx, w, read.Version, annotations)
	if apierrors.IsConflict(err) {
		return false, nil
	}
	return err == nil, err
}

func (c workloads) Revision(ctx context.Context, namespace, secret string) (notify.Revision, bool, error) {
	annotations, err := c.client.Annotations(ctx, namespace, secret)
	if apierrors.IsNotFound(err) {
		return notify.Revision{}, false, nil
	}
	if err != nil {
		return notify.Revision{}, false, err
	}
	number, ok := annotations[targets.RevisionAnnotation]
	if !ok {
		return notify.Revision{}, false, nil
	}
	revision, err := notify.ParseRevision(number, annotations[targets.RevisedAnnotation])
	revision.First = annotations[targets.FilledAnnotation] == number
	revision.Restarts = targets.ParseRestartMemos(annotations[targets.RestartsAnnotation])
	return revision, err == nil, err
}

func (c workloads) Remember(ctx context.Context, w targets.Workload, secret string, memo targets.RestartMemo) error {
	err := c.client.AnnotateSecret(ctx, w.Namespace, secret, targets.RestartsAnnotation, func(before string) string {
		memos := targets.ParseRestartMemos(before)
		memos[w.String()] = memo
		return memos.String()
	})
	if apierrors.IsNotFound(err) {
		return nil // the next Secret with that name has another revision
	}
	return err
}

func (c workloads) HasPodsOf(ctx context.Context, w targets.Workload, at time.Time) (bool, error) {
	rollout, err := c.client.Rollout(ctx, w)
	if err != nil {
		return false, err
	}
	pods, err := c.client.Pods(ctx, w.Namespace)
	return slices.ContainsFunc(pods, func(p corev1.Pod) bool {
		ended := p.DeletionTimestamp != nil || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
		return !ended && rollout.Selector.Matches(labels.Set(p.Labels)) && !p.CreationTimestamp.After(at)
	}), err
}
