package pipeline

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

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
	return revision, err == nil, err
}
