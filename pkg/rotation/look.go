package rotation

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/pkg/connect"
	"github.com/secretsync/syncer/pkg/kube"
	"github.com/secretsync/syncer/pkg/rotate"
	"github.com/secretsync/syncer/pkg/sinks/kubesecrets"
	"github.com/secretsync/syncer/pkg/targets"
)

// Look returns what looks, as a standalone does, at the sets of a configuration
// and at who uses them in the cluster. It is not to be run.
func Look(cfg *config.Config, o connect.Options) (r *rotate.Rotator, closing func(), err error) {
	cluster, err := connect.Kubernetes(cfg.Kubernetes, o)
	if err != nil {
		return nil, nil, err
	}
	at := &secretsAt{cluster: cluster, of: cfg.Kubernetes, timeout: cfg.Conjur.HTTPTimeout}
	r, closeConjur, err := Connect(cfg.Rotation, Parts{Options: o, Cluster: cluster, Targets: at})
	if err != nil {
		cluster.Close()
		return nil, nil, err
	}
	return r, func() { closeConjur(); cluster.Close() }, nil
}

// secretsAt is what the Secrets of a configuration show when they are asked for.
type secretsAt struct {
	cluster *kube.Client
	of      config.Kubernetes
	timeout time.Duration
}

// Shown implements rotate.Targets.
func (s *secretsAt) Shown(set string) (shown []rotate.Shown, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), s.timeout)
	defer cancel()
	for namespace, names := range s.of.Watched() {
		all, err := s.annotations(ctx, namespace, names)
		if err != nil {
			return nil, err
		}
		for name, annotations := range all {
			if has, ok := kubesecrets.ParseSets(annotations[targets.RotationAnnotation])[set]; ok {
				shown = append(shown, rotate.Shown{Namespace: name.Namespace, Name: name.Name, Step: has.Step, Primary: has.Primary, Since: time.Now()})
			}
		}
	}
	return shown, nil
}

// Check returns which Secrets of a set cannot be written.
func (s *secretsAt) Check(ctx context.Context, set string) (problems []string) {
	shown, err := s.Shown(set)
	if err != nil {
		return []string{err.Error()}
	}
	for _, at := range shown {
		if err := s.cluster.TryWriting(ctx, at.Namespace, at.Name); err != nil {
			problems = append(problems, err.Error())
		}
	}
	return problems
}

func (s *secretsAt) annotations(ctx context.Context, namespace string, names []string) (map[types.NamespacedName]map[string]string, error) {
	if names == nil {
		return s.cluster.LabelledAnnotations(ctx, namespace)
	}
	all := map[types.NamespacedName]map[string]string{}
	for _, name := range names {
		annotations, err := s.cluster.Annotations(ctx, namespace, name)
		if err != nil {
			return nil, err
		}
		all[types.NamespacedName{Namespace: namespace, Name: name}] = annotations
	}
	return all, nil
}

// Since implements rotate.Targets. Who looks makes nothing.
func (s *secretsAt) Since(context.Context, []string) (time.Time, error) { return time.Time{}, nil }
