package rotators

import (
	"context"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/pkg/kube"
	"github.com/secretsync/syncer/pkg/pipeline/connect"
	"github.com/secretsync/syncer/pkg/rotation"
	"github.com/secretsync/syncer/pkg/sinks/kubesecrets"
)

// Look returns a rotator that inspects the sets of a configuration and their consumers in
// the cluster, as a standalone process does. Do not run it.
func Look(cfg *config.Config, o connect.Options) (r *rotation.Rotator, closing func(), err error) {
	cluster, err := connect.Kubernetes(cfg.Kubernetes, o)
	if err != nil {
		return nil, nil, err
	}
	at := &secretsAt{cluster: cluster, of: cfg.Kubernetes, sets: cfg.Rotation.Sets, timeout: cfg.Conjur.HTTPTimeout}
	r, closeConjur, err := Connect(cfg.Rotation, Parts{Options: o, Cluster: cluster, Targets: at})
	if err != nil {
		cluster.Close()
		return nil, nil, err
	}
	return r, func() { closeConjur(); cluster.Close() }, nil
}

// secretsAt reads what the Secrets of a configuration show at the time of each call.
type secretsAt struct {
	cluster *kube.Client
	of      config.Kubernetes
	sets    []config.RotatedSet
	timeout time.Duration
}

// Shown implements rotation.Targets.
func (s *secretsAt) Shown(ctx context.Context, set string) (shown []rotation.Shown, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	permitted := func(namespace string) bool {
		return slices.ContainsFunc(s.sets, func(r config.RotatedSet) bool {
			return r.Set == set && (len(r.Confirm.Namespaces) == 0 || slices.Contains(r.Confirm.Namespaces, namespace))
		})
	}
	for namespace, names := range s.of.Watched() {
		if namespace != "" && !permitted(namespace) {
			continue
		}
		all, err := s.metadata(ctx, namespace, names)
		if namespace != "" && apierrors.IsForbidden(err) {
			shown = append(shown, rotation.Shown{Namespace: namespace, Since: time.Now(), Unread: "the credentials of this command may not read its Secrets"})
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, about := range all {
			if has, ok := kubesecrets.SetsOf(about)[set]; ok && permitted(about.Namespace) {
				shown = append(shown, rotation.Shown{Namespace: about.Namespace, Name: about.Name, Step: has.Step, Primary: has.Primary, Since: time.Now()})
			}
		}
	}
	return shown, nil
}

// Check returns those of the Secrets that cannot be written.
func (s *secretsAt) Check(ctx context.Context, shown []rotation.Shown) (problems []string) {
	for _, at := range shown {
		if at.Unread != "" {
			continue // the consumers report it
		}
		if err := s.cluster.TryWriting(ctx, at.Namespace, at.Name); err != nil {
			problems = append(problems, err.Error())
		}
	}
	return problems
}

func (s *secretsAt) metadata(ctx context.Context, namespace string, names []string) (all []metav1.ObjectMeta, err error) {
	if names == nil {
		return s.cluster.LabelledMetadata(ctx, namespace)
	}
	for _, name := range names {
		about, err := s.cluster.Metadata(ctx, namespace, name)
		if err != nil {
			return nil, err
		}
		all = append(all, about)
	}
	return all, nil
}

// Since implements rotation.Targets. It returns the zero time, because a look never adopts
// a value. Only an adoption needs the creation time of the Secrets.
func (s *secretsAt) Since(context.Context, []string) (time.Time, error) { return time.Time{}, nil }
