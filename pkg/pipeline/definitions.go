package pipeline

import (
	"fmt"

	"go.uber.org/zap"

	"github.com/secretsync/syncer/pkg/kube"
	"github.com/secretsync/syncer/pkg/queue"
	"github.com/secretsync/syncer/pkg/targets"
)

// upsert makes a Secret as it is now the target of its lane.
func (s *secretsPlace) upsert(secret *kube.Secret, redefined bool) {
	key := targets.KubeSecretKey(secret.Namespace, secret.Name)
	s.mu.Lock()
	s.found[key] = secret.UID
	s.mu.Unlock()
	l := s.lane(key, secret.Namespace, secret.Name)
	if l == nil {
		return
	}
	switch {
	case redefined:
		def := s.definition(l, secret.Namespace, secret.Name)
		def.UID, def.Annotations, def.Map, def.HasMap = string(secret.UID), secret.Annotations, secret.Map, secret.HasMap
		s.define(l, def)
	case s.secrets.News(secret.Namespace, secret.Name, secret.ResourceVersion):
		l.enqueue(queue.Hint{Trigger: "drift", Wakes: true}, key)
	}
}

// drifted has a Secret looked at that somebody else has changed.
func (s *secretsPlace) drifted(namespace, name string) {
	if l := s.laneOf(namespace, name); l != nil {
		l.enqueue(queue.Hint{Trigger: "drift", Wakes: true}, targets.KubeSecretKey(namespace, name))
	}
}

// gone takes a Secret out of its lane. One that is named by the configuration
// is waited for, or made.
func (s *secretsPlace) gone(namespace, name string) {
	key := targets.KubeSecretKey(namespace, name)
	s.mu.Lock()
	delete(s.found, key)
	s.mu.Unlock()
	l := s.lane(key, namespace, name)
	if l == nil {
		return
	}
	if def := s.definition(l, namespace, name); def.Named {
		def.Missing = true
		s.define(l, def)
		return
	}
	l.targets.Delete(key)
	l.queue.Costly(key, false)
	l.fresh.Forget(key)
	s.secrets.Forget(namespace, name)
	s.troubles.Forget(string(key))
	s.news.forget(key)
	s.texts.refresh()
}

// lane finds the lane of a Secret, and says so when there is none.
func (s *secretsPlace) lane(key targets.Key, namespace, name string) *lane {
	l := s.laneOf(namespace, name)
	if l == nil {
		err := fmt.Errorf("no identity serves the namespace %q; add it to one of the identities, or configure a default identity", namespace)
		s.troubles.Report(string(key), err)
		s.news.failed(key, err)
	}
	return l
}

// define has a target made of a definition, and synced.
func (s *secretsPlace) define(l *lane, def targets.SecretDefinition) {
	t, warnings := targets.FromSecret(def)
	if l.targets.Put(t) {
		for _, warning := range warnings {
			s.log.Warn(warning, zap.String("target", string(t.Key)))
		}
		s.news.warned(t.Key, warnings)
		s.texts.refresh()
	}
	l.enqueue(queue.Hint{Trigger: "secret", Wakes: true}, t.Key)
	s.news.defined(t)
}

// definition is what the configuration says of a Secret.
func (s *secretsPlace) definition(l *lane, namespace, name string) targets.SecretDefinition {
	for _, def := range s.cfg.Kubernetes.Definitions {
		if def.Namespace == namespace && def.Name == name {
			def.Account, def.Named = l.identity.Conjur.Account, true
			return def
		}
	}
	return targets.SecretDefinition{Namespace: namespace, Name: name, Account: l.identity.Conjur.Account}
}

// unreadable takes down that a Secret which the configuration names may be
// there or not.
func (s *secretsPlace) unreadable(namespace, name string, err error) {
	key := targets.KubeSecretKey(namespace, name)
	if l := s.lane(key, namespace, name); l != nil {
		def := s.definition(l, namespace, name)
		def.Unread = err.Error()
		s.define(l, def)
	}
}
