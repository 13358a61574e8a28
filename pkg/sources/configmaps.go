package sources

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/secretsync/syncer/pkg/kube"
	"github.com/secretsync/syncer/pkg/queue"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/wake"
)

// ConfigMapUsers is the targets by the ConfigMaps' templates that they use.
type ConfigMapUsers interface {
	ConfigMaps() []targets.ConfigMapKey
	ByConfigMap(keys ...targets.ConfigMapKey) []targets.Key
}

// ConfigMaps is the templates that ConfigMaps hold. It reads them for the
// workers and hints at the targets whose template changed.
type ConfigMaps struct {
	Client *kube.Client
	// Interval is the time between looks at what may not be watched.
	Interval time.Duration
	Users    ConfigMapUsers
	Queue    Enqueuer
	// Reporter is called when a watch begins or ceases to stand, and remarks
	// where looks at each interval are all that is permitted.
	Reporter Remarker

	troubles folded    // by ConfigMap
	refresh  wake.Wake // as the templates in use may have changed

	mu      sync.Mutex
	watches map[types.NamespacedName]*mapWatch
	given   map[targets.ConfigMapKey]templateText // what the workers have, but for what was hinted at since
	events  int                                   // so far
}

// mapWatch is the watch of one ConfigMap.
type mapWatch struct {
	*kube.Watch[*corev1.ConfigMap]
	stop context.CancelFunc
	done chan struct{}
}

// templateText is a template; the zero one is not there.
type templateText struct {
	there bool
	text  string
	noMap bool // nor is its ConfigMap
}

// Text returns a template: from memory while its ConfigMap is watched, else by
// asking the API server. While the API server is away, that is the text that
// was there last.
func (c *ConfigMaps) Text(ctx context.Context, key targets.ConfigMapKey) (string, error) {
	t, err := c.find(ctx, key)
	switch {
	case err != nil:
		return "", err
	case t.noMap:
		return "", fmt.Errorf("there is no configmap %s/%s to hold the template %s; create it", key.Namespace, key.Name, key.Key)
	case !t.there:
		return "", fmt.Errorf("configmap %s/%s has no template %s; add this key to its data", key.Namespace, key.Name, key.Key)
	}
	return t.text, nil
}

func (c *ConfigMaps) find(ctx context.Context, key targets.ConfigMapKey) (templateText, error) {
	for {
		t, live, events := c.stored(key)
		if live {
			return t, nil
		}
		m, err := c.Client.ConfigMap(ctx, key.Namespace, key.Name)
		if err != nil && !apierrors.IsNotFound(err) {
			return t, err
		}
		if t = textOf(m, key.Key); c.give(key, t, events) {
			return t, nil
		}
	}
}

// stored returns a template from memory, if it is live there; else it
// returns how many events there were.
func (c *ConfigMaps) stored(key targets.ConfigMapKey) (t templateText, live bool, events int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.watches[mapOf(key)]
	if w == nil {
		return t, false, c.events
	}
	m, live := w.Get()
	if live {
		t = textOf(m, key.Key)
		c.set(key, t)
	}
	return t, live, c.events
}

// give hands a worker what the API server answered, unless an event came
// meanwhile: the answer may be older.
func (c *ConfigMaps) give(key targets.ConfigMapKey, t templateText, events int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.events != events {
		return false
	}
	c.set(key, t)
	return true
}

func (c *ConfigMaps) set(key targets.ConfigMapKey, t templateText) {
	if c.given == nil {
		c.given = map[targets.ConfigMapKey]templateText{}
	}
	c.given[key] = t
}

// saw takes a ConfigMap as it is now, nil when there is none, and hints at the
// targets whose template is not the one that a worker was given.
func (c *ConfigMaps) saw(name types.NamespacedName, m *corev1.ConfigMap) {
	var changed []targets.ConfigMapKey
	c.mu.Lock()
	c.events++
	for key, given := range c.given {
		if now := textOf(m, key.Key); mapOf(key) == name && now != given {
			c.given[key] = now
			changed = append(changed, key)
		}
	}
	c.mu.Unlock()
	if len(changed) > 0 {
		slices.SortFunc(changed, func(a, b targets.ConfigMapKey) int { return strings.Compare(a.Key, b.Key) })
		c.Queue.Enqueue(queue.Hint{Trigger: "template", Wakes: true}, c.Users.ByConfigMap(changed...)...)
	}
}

// textOf finds a template in a ConfigMap, nil when there is none.
func textOf(m *corev1.ConfigMap, key string) templateText {
	if m == nil {
		return templateText{noMap: true}
	}
	text, there := m.Data[key]
	return templateText{there: there, text: text}
}

func mapOf(key targets.ConfigMapKey) types.NamespacedName {
	return types.NamespacedName{Namespace: key.Namespace, Name: key.Name}
}

// Refresh makes Run look again which templates are in use. It does not wait for it.
func (c *ConfigMaps) Refresh() {
	c.refresh.Rouse()
}

// Run watches the ConfigMaps in use until ctx ends, and returns when all that
// it started has.
func (c *ConfigMaps) Run(ctx context.Context) {
	for ctx.Err() == nil {
		c.follow(ctx, c.Users.ConfigMaps())
		select {
		case <-ctx.Done():
		case <-c.refresh.C():
		}
	}
	c.follow(ctx, nil)
}

// follow has the ConfigMaps of the templates in use watched, and no others.
func (c *ConfigMaps) follow(ctx context.Context, keys []targets.ConfigMapKey) {
	wanted := map[types.NamespacedName]bool{}
	for _, key := range keys {
		wanted[mapOf(key)] = true
	}
	c.mu.Lock()
	before := maps.Clone(c.watches)
	c.watches = map[types.NamespacedName]*mapWatch{}
	for name := range wanted {
		if c.watches[name] = before[name]; c.watches[name] == nil {
			c.watches[name] = c.watch(ctx, name)
		}
	}
	maps.DeleteFunc(c.given, func(key targets.ConfigMapKey, _ templateText) bool { return !slices.Contains(keys, key) })
	c.mu.Unlock()
	for name, w := range before {
		if !wanted[name] {
			w.stop()
			<-w.done
			c.note(name, trouble{})
		}
	}
}

// watch begins to watch a ConfigMap.
func (c *ConfigMaps) watch(ctx context.Context, name types.NamespacedName) *mapWatch {
	ctx, stop := context.WithCancel(ctx)
	w := &mapWatch{stop: stop, done: make(chan struct{})}
	w.Watch = c.Client.WatchConfigMap(kube.Selection{Namespace: name.Namespace, Name: name.Name, Interval: c.Interval}, mapHandler{c, name})
	go func() {
		defer close(w.done)
		w.Run(ctx)
	}()
	return w
}

func (c *ConfigMaps) note(name types.NamespacedName, t trouble) {
	c.troubles.note(c.Reporter, "watch of template configmaps", name.String(), t)
}

// mapHandler is called by the watch of one ConfigMap.
type mapHandler struct {
	*ConfigMaps
	name types.NamespacedName
}

func (h mapHandler) Put(_, now *corev1.ConfigMap) { h.saw(h.name, now) }
func (h mapHandler) Gone(string, string)          { h.saw(h.name, nil) }
func (h mapHandler) Report(err error)             { h.note(h.name, trouble{err: err}) }
func (h mapHandler) Remark(err error)             { h.note(h.name, trouble{err: err, limited: true}) }
