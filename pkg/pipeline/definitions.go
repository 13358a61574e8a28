package pipeline

import (
	"slices"

	"go.uber.org/zap"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/pkg/kube"
	"github.com/secretsync/syncer/pkg/queue"
	"github.com/secretsync/syncer/pkg/sinks/kubesecrets"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/targets/definitions"
)

// Upsert updates the target of a Secret in its lane to the Secret's current state.
func (s *secrets) Upsert(found *kube.Secret, redefined bool) {
	key := targets.KubeSecretKey(found.Namespace, found.Name)
	// Observe before a worker gets the target: this state is older than the worker's
	// write.
	drifted := s.set.Observe(key, kubesecrets.Version(found.UID, found.ResourceVersion))
	if redefined {
		s.define(found.Namespace, found.Name, func(def *definitions.SecretDefinition) {
			def.UID, def.Annotations, def.Type = string(found.UID), found.Annotations, string(found.Type)
			def.Map, def.HasMap = found.ConjurMap()
			def.Oversize, def.Crowded = found.Dropped()
		})
	}
	if drifted {
		s.fights.drifted(key)
	}
}

// Gone removes a Secret from its lane. If the configuration names the Secret, Syncer
// waits for it or creates it.
func (s *secrets) Gone(namespace, name string) {
	if named(s.config(), namespace, name) >= 0 {
		s.define(namespace, name, func(def *definitions.SecretDefinition) { def.Missing = true })
		return
	}
	s.forget(targets.KubeSecretKey(namespace, name))
	s.texts.refresh()
}

// forget stops keeping a Secret in sync. The content of the Secret stays.
func (s *secrets) forget(key targets.Key) {
	s.take(queue.Hint{}, s.set.Delete(key))
	s.accounts.changed(key)
	s.fights.forget(key)
	s.troubles.Forget(string(key))
}

// define makes a target from the configuration of a Secret and from what complete adds.
// It puts the target in the lane of the identity that serves it. If the target differs
// from before, define enqueues a sync.
func (s *secrets) define(namespace, name string, complete func(*definitions.SecretDefinition)) {
	cfg := s.config()
	identity, ok := cfg.IdentityOf(namespace, name)
	if !ok {
		return // the watch that found it is about to end
	}
	def := definitions.SecretDefinition{Namespace: namespace, Name: name}
	if i := named(cfg, namespace, name); i >= 0 {
		def = cfg.Kubernetes.Definitions[i]
		def.Named = true
	}
	def.Account = identity.Conjur.Account
	complete(&def)
	t, warnings := s.parse(def)
	lane := s.set.Lane(identity.Name)
	put := lane.Put
	if def.Crowded {
		put = lane.Crowd
	}
	changes := put(t)
	if why := s.set.Crowded(t.Key); why != "" {
		s.news.invalid(t, why)
	}
	if len(changes) == 0 {
		return
	}
	for _, warning := range warnings {
		s.Log.Warn(warning, zap.String("target", string(t.Key)))
	}
	s.news.warned(t.Key, warnings)
	s.texts.refresh()
	s.take(queue.Hint{Trigger: "secret", Wakes: true}, changes)
	s.news.defined(t)
	s.accounts.changed(t.Key)
}

// parse makes one target at a time, because parsing a large map needs many times its size
// in memory.
func (s *secrets) parse(def definitions.SecretDefinition) (*targets.Target, []string) {
	s.parsing.Lock()
	defer s.parsing.Unlock()
	return definitions.FromSecret(def)
}

// named returns the index of a Secret in the configured list, or -1.
func named(cfg *config.Config, namespace, name string) int {
	return slices.IndexFunc(cfg.Kubernetes.Definitions, func(def definitions.SecretDefinition) bool {
		return def.Namespace == namespace && def.Name == name
	})
}

// Unread records that the existence of a configured Secret is unknown.
func (s *secrets) Unread(namespace, name string, err error) {
	s.define(namespace, name, func(def *definitions.SecretDefinition) { def.Unread = err.Error() })
}
