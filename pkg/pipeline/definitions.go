package pipeline

import (
	"slices"

	"go.uber.org/zap"

	"github.com/secretsync/syncer/pkg/kube"
	"github.com/secretsync/syncer/pkg/queue"
	"github.com/secretsync/syncer/pkg/sinks"
	"github.com/secretsync/syncer/pkg/targets"
)

// upsert makes a Secret as it is now the target of its lane.
func (s *secrets) upsert(found *kube.Secret, redefined bool) {
	key := targets.KubeSecretKey(found.Namespace, found.Name)
	l := s.laneOf(found.Namespace, found.Name)
	switch {
	case redefined:
		def := s.definition(l, found.Namespace, found.Name)
		def.UID, def.Annotations, def.Map, def.HasMap = string(found.UID), found.Annotations, found.Map, found.HasMap
		s.define(l, def)
	case s.set.Observe(key, sinks.SecretVersion(found.UID, found.ResourceVersion)):
		l.enqueue(queue.Hint{Trigger: "drift", Wakes: true}, key)
	}
}

// gone takes a Secret out of its lane. One that is named by the configuration
// is waited for, or made.
func (s *secrets) gone(namespace, name string) {
	key := targets.KubeSecretKey(namespace, name)
	l := s.laneOf(namespace, name)
	if def := s.definition(l, namespace, name); def.Named {
		def.Missing = true
		s.define(l, def)
		return
	}
	s.take(queue.Hint{}, s.set.Delete(key))
	s.troubles.Forget(string(key))
	s.texts.refresh()
}

// laneOf returns the lane of the identity that serves a Kubernetes Secret. The
// configuration was checked to have one for each that is watched.
func (s *secrets) laneOf(namespace, name string) *lane {
	identity, _ := s.config().IdentityOf(namespace, name)
	return s.lanes[slices.IndexFunc(s.lanes, func(l *lane) bool { return l.identity.Name == identity.Name })]
}

// define has a target made of a definition, and synced.
func (s *secrets) define(l *lane, def targets.SecretDefinition) {
	t, warnings := targets.FromSecret(def)
	changes := l.targets.Put(t)
	if len(changes) > 0 {
		for _, warning := range warnings {
			s.Log.Warn(warning, zap.String("target", string(t.Key)))
		}
		s.news.warned(t.Key, warnings)
		s.texts.refresh()
	} else { // another Secret may be there, of which the same is wanted
		changes = []targets.Change{{Key: t.Key, Lane: l.identity.Name}}
	}
	s.take(queue.Hint{Trigger: "secret", Wakes: true}, changes)
	s.news.defined(t)
}

// definition is what the configuration says of a Secret.
func (s *secrets) definition(l *lane, namespace, name string) targets.SecretDefinition {
	for _, def := range s.config().Kubernetes.Definitions {
		if def.Namespace == namespace && def.Name == name {
			def.Account, def.Named = l.identity.Conjur.Account, true
			return def
		}
	}
	return targets.SecretDefinition{Namespace: namespace, Name: name, Account: l.identity.Conjur.Account}
}

// unreadable takes down that a Secret which the configuration names may be
// there or not.
func (s *secrets) unreadable(namespace, name string, err error) {
	l := s.laneOf(namespace, name)
	def := s.definition(l, namespace, name)
	def.Unread = err.Error()
	s.define(l, def)
}
