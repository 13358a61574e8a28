package consumers

import (
	"context"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/secretsync/syncer/pkg/notify"
	"github.com/secretsync/syncer/pkg/rotation"
	"github.com/secretsync/syncer/pkg/targets"
)

// revisions are those of the set's Secrets in a namespace, by the annotation of
// Pods that notes them.
type revisions map[string]notify.Revision

func (c *Consumers) revisions(ctx context.Context, namespace string, secrets []rotation.Shown) (revisions, error) {
	all := revisions{}
	for _, s := range secrets {
		if s.Namespace != namespace {
			continue
		}
		annotations, err := c.Cluster.Annotations(ctx, namespace, s.Name)
		if err != nil {
			return nil, err
		}
		number, ok := annotations[targets.RevisionAnnotation]
		if !ok {
			continue // nothing of it was ever changed
		}
		r, err := notify.ParseRevision(number, annotations[targets.RevisedAnnotation])
		if err != nil {
			return nil, err
		}
		all[notify.TemplateAnnotation(s.Name)] = r
	}
	return all, nil
}

// before reports whether a Pod may have begun before one of the Secrets had its
// present data: neither is a restart for this revision noted on it, nor was it
// made after it.
func (all revisions) before(pod corev1.Pod) bool {
	for annotation, r := range all {
		noted, _ := strconv.ParseInt(pod.Annotations[annotation], 10, 64)
		if noted < r.Number && !pod.CreationTimestamp.After(r.At) {
			return true
		}
	}
	return false
}
