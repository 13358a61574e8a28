package consumers

import (
	"context"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/secretsync/syncer/pkg/notify"
	"github.com/secretsync/syncer/pkg/rotation"
	"github.com/secretsync/syncer/pkg/targets"
)

// revisions are the revisions of the set's Secrets in a namespace, by the Pod annotation
// that records them.
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
			continue // Syncer never changed this Secret
		}
		r, err := notify.ParseRevision(number, annotations[targets.RevisedAnnotation])
		if err != nil {
			return nil, err
		}
		all[notify.TemplateAnnotation(s.Name)] = r
	}
	return all, nil
}

// before reports whether a Pod may have started before one of the Secrets received its
// present data. That is so if the Pod has no annotation of a restart for this revision
// and was not created after it.
func (all revisions) before(pod corev1.Pod) bool {
	for annotation, r := range all {
		noted, _ := strconv.ParseInt(pod.Annotations[annotation], 10, 64)
		if noted < r.Number && !pod.CreationTimestamp.After(r.At) {
			return true
		}
	}
	return false
}
