package sources

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/secretsync/syncer/pkg/kube"
	"github.com/secretsync/syncer/pkg/targets"
)

// ConfigMaps is the templates that ConfigMaps hold. It reads them for the
// workers and hints at the targets whose template changed.
type ConfigMaps struct {
	Client *kube.Client
	// Interval is the time between looks at what may not be watched.
	Interval time.Duration
	// Wanted lists the templates in use.
	Wanted func() []targets.ConfigMapKey
	// ByConfigMap finds the targets that use any of the templates.
	ByConfigMap func(keys ...targets.ConfigMapKey) []targets.Key
	Enqueue     Enqueue
	Report      Report

	once     sync.Once
	refresh  chan struct{} // holds one when Wanted may have changed
	troubles folded        // by ConfigMap

	mu    sync.Mutex
	texts map[targets.ConfigMapKey]templateText // as last seen
	live  map[types.NamespacedName]bool         // the ConfigMaps whose texts are kept up to date
}

// templateText is a template; the zero one is not there.
type templateText struct {
	there bool
	text  string
	noMap bool // nor is its ConfigMap
}

// Text gives a template: from memory while its ConfigMap is watched, else by
// asking the API server. While the API server is away, that is the text that
// was there last.
func (c *ConfigMaps) Text(ctx context.Context, key targets.ConfigMapKey) (string, error) {
	c.mu.Lock()
	t, seen := c.texts[key]
	seen = seen && c.live[mapOf(key)]
	c.mu.Unlock()
	if !seen {
		texts, err := c.Client.ConfigMap(ctx, key.Namespace, key.Name, func(name string) bool { return name == key.Key })
		if err != nil && !apierrors.IsNotFound(err) {
			return "", err
		}
		t = c.keep(key, textOf(texts.Data, key.Key))
	}
	switch {
	case t.noMap:
		return "", fmt.Errorf("there is no configmap %s/%s to hold the template %s; create it", key.Namespace, key.Name, key.Key)
	case !t.there:
		return "", fmt.Errorf("configmap %s/%s has no template %s; add this key to its data", key.Namespace, key.Name, key.Key)
	}
	return t.text, nil
}

// textOf finds a template in a ConfigMap's data, which are nil when there is no
// ConfigMap.
func textOf(data map[string]string, key string) templateText {
	text, there := data[key]
	return templateText{there: there, text: text, noMap: data == nil}
}

// keep notes what a worker was given, so that a change of it shows as one. What
// a watch brought meanwhile is newer, and wins.
func (c *ConfigMaps) keep(key targets.ConfigMapKey, t templateText) templateText {
	c.mu.Lock()
	defer c.mu.Unlock()
	if newer, seen := c.texts[key]; seen && c.live[mapOf(key)] {
		return newer
	}
	c.set(key, t)
	return t
}

// set is called with the lock held, and tells whether a worker may have read
// something else.
func (c *ConfigMaps) set(key targets.ConfigMapKey, t templateText) (changed bool) {
	if c.texts == nil {
		c.texts = map[targets.ConfigMapKey]templateText{}
	}
	before, seen := c.texts[key]
	c.texts[key] = t
	return seen && t != before
}

func mapOf(key targets.ConfigMapKey) types.NamespacedName {
	return types.NamespacedName{Namespace: key.Namespace, Name: key.Name}
}

// Refresh makes Run ask Wanted again. It does not wait for it.
func (c *ConfigMaps) Refresh() {
	select {
	case c.signal() <- struct{}{}:
	default:
	}
}

func (c *ConfigMaps) signal() chan struct{} {
	c.once.Do(func() { c.refresh = make(chan struct{}, 1) })
	return c.refresh
}
