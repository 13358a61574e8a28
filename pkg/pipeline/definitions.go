package pipeline

import (
	"slices"
	"sync"

	"go.uber.org/zap"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/pkg/health"
	"github.com/secretsync/syncer/pkg/kube"
	"github.com/secretsync/syncer/pkg/queue"
	"github.com/secretsync/syncer/pkg/sinks/kubesecrets"
	"github.com/secretsync/syncer/pkg/sources"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/targets/definitions"
	"github.com/secretsync/syncer/pkg/targets/records"
	"github.com/secretsync/syncer/pkg/workers"
)

// definer makes targets of Secrets, as the Secrets and the configuration define them.
type definer struct {
	settings *settings
	set      *records.Set
	lanes    *lanes
	texts    *sources.TemplateTexts
	events   *events
	accounts *kube.PullSecrets
	drift    *workers.Drift
	troubles *health.Troubles
	log      *zap.Logger

	parsing sync.Mutex // of a large definition
}

// Upsert updates the target of a Secret in its lane to the Secret's current state.
func (d *definer) Upsert(found *kube.Secret, redefined bool) {
	key := targets.KubeSecretKey(found.Namespace, found.Name)
	// Observe before a worker gets the target: this state is older than the worker's
	// write.
	drifted := d.set.Observe(key, kubesecrets.Version(found.UID, found.ResourceVersion))
	if redefined {
		d.define(found.Namespace, found.Name, func(def *definitions.SecretDefinition) {
			def.UID, def.Annotations, def.Type = string(found.UID), found.Annotations, string(found.Type)
			def.Map, def.HasMap = found.ConjurMap()
			def.Oversize, def.OverBudget = found.Dropped()
		})
	}
	if drifted {
		d.drift.Correct(key)
	}
}

// Gone removes a Secret from its lane. If the configuration names the Secret, Syncer
// waits for it or creates it.
func (d *definer) Gone(namespace, name string) {
	if named(d.settings.config(), namespace, name) >= 0 {
		d.define(namespace, name, func(def *definitions.SecretDefinition) { def.Missing = true })
		return
	}
	d.forget(targets.KubeSecretKey(namespace, name))
	d.texts.Refresh()
}

// forget stops keeping a Secret in sync. The content of the Secret stays.
func (d *definer) forget(key targets.Key) {
	d.lanes.apply(queue.Hint{}, d.set.Delete(key))
	d.accounts.Changed(key)
	d.drift.Forget(key)
	d.troubles.Forget(string(key))
}

// define makes a target from the configuration of a Secret and from what complete adds.
// It puts the target in the lane of the identity that serves it. If the target differs
// from before, define enqueues a sync.
func (d *definer) define(namespace, name string, complete func(*definitions.SecretDefinition)) {
	cfg := d.settings.config()
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
	t := d.parse(def)
	lane := d.set.Lane(identity.Name)
	put := lane.Put
	if def.OverBudget {
		put = lane.OmitOverBudget
	}
	changes := put(t)
	if why := d.set.OverBudget(t.Key); why != "" {
		d.events.invalid(t, why)
	}
	if len(changes) == 0 {
		return
	}
	texts := targets.Texts(t.Secret.Warnings)
	for _, warning := range texts {
		d.log.Warn(warning, zap.String("target", string(t.Key)))
	}
	d.events.warned(t.Key, texts)
	d.texts.Refresh()
	d.lanes.apply(queue.Hint{Trigger: "secret", Wakes: true}, changes)
	d.events.defined(t)
	d.accounts.Changed(t.Key)
}

// smallDefinition is the size in bytes up to which a definition is parsed at once.
const smallDefinition = 4 << 10

// parse makes one target at a time, because parsing a large map needs many times its size
// in memory. Small definitions do not wait for that.
func (d *definer) parse(def definitions.SecretDefinition) *targets.Target {
	if def.Size() > smallDefinition {
		d.parsing.Lock()
		defer d.parsing.Unlock()
	}
	return definitions.FromSecret(def)
}

// named returns the index of a Secret in the configured list, or -1.
func named(cfg *config.Config, namespace, name string) int {
	return slices.IndexFunc(cfg.Kubernetes.Definitions, func(def definitions.SecretDefinition) bool {
		return def.Namespace == namespace && def.Name == name
	})
}

// Unread records that the existence of a configured Secret is unknown.
func (d *definer) Unread(namespace, name string, err error) {
	d.define(namespace, name, func(def *definitions.SecretDefinition) { def.Unread = err.Error() })
}
