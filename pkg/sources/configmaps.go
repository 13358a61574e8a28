package sources

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/secretsync/syncer/internal/wake"
	"github.com/secretsync/syncer/pkg/kube"
	"github.com/secretsync/syncer/pkg/queue"
	"github.com/secretsync/syncer/pkg/targets"
)

// ConfigMapUsers is the targets by the ConfigMaps' templates that they use.
type ConfigMapUsers interface {
	ConfigMaps() []targets.ConfigMapKey
	ByConfigMap(keys ...targets.ConfigMapKey) []targets.Key
}

// ConfigMaps is the templates that ConfigMaps hold. It reads them for the
// workers and hints at the targets whose template changed.
//
// It keeps the texts of the templates in use, up to targets.MaxTemplates of a
// namespace, and nothing else of a ConfigMap.
type ConfigMaps struct {
	Client *kube.Client
	// Interval is the time between looks at what may not be watched.
	Interval time.Duration
	Users    ConfigMapUsers
	Queue    Enqueuer
	// Reporter is called when a watch begins or ceases to stand, and remarks
	// where looks at each interval are all that is permitted.
	Reporter Remarker

	troubles folded    // by ConfigMap, or namespace
	refresh  wake.Wake // as the templates in use may have changed

	mu     sync.Mutex
	spaces map[string]*mapSpace
	given  map[types.NamespacedName]map[string]templateText // what the workers have, but for what was hinted at since
	events int                                              // so far
}

// templateText is a template; the zero one is not there.
type templateText struct {
	there bool
	text  string
	noMap bool // nor is its ConfigMap
	size  int  // of one that is too large to be kept
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
	case t.size > 0:
		return "", fmt.Errorf("the template %s of configmap %s/%s has %d bytes, and may have %d; divide it", key.Key, key.Namespace, key.Name, t.size, targets.MaxTemplate)
	case !t.there:
		return "", fmt.Errorf("configmap %s/%s has no template %s; add this key to its data", key.Namespace, key.Name, key.Key)
	}
	return t.text, nil
}

func (c *ConfigMaps) find(ctx context.Context, key targets.ConfigMapKey) (templateText, error) {
	for {
		t, live, events, err := c.stored(key)
		if live || err != nil {
			return t, err
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
func (c *ConfigMaps) stored(key targets.ConfigMapKey) (t templateText, live bool, events int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.spaces[key.Namespace]
	if s == nil {
		return t, false, c.events, nil
	}
	if s.over[key] {
		return t, false, 0, fmt.Errorf("the targets of namespace %s use more than %d templates of ConfigMaps; use fewer, or write templates in annotations", key.Namespace, targets.MaxTemplates)
	}
	t, given := c.given[mapOf(key)][key.Key]
	return t, given && s.live(key.Name), c.events, nil
}

// give hands a worker what the API server answered, unless an event came
// meanwhile: the answer may be older.
func (c *ConfigMaps) give(key targets.ConfigMapKey, t templateText, events int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.events != events {
		return false
	}
	if s := c.spaces[key.Namespace]; s != nil && !s.used[key] {
		return true // nobody would hear of a change
	}
	texts := c.given[mapOf(key)]
	if texts == nil {
		texts = map[string]templateText{}
		if c.given == nil {
			c.given = map[types.NamespacedName]map[string]templateText{}
		}
		c.given[mapOf(key)] = texts
	}
	texts[key.Key] = t
	return true
}

// saw takes a ConfigMap as it is now, nil when there is none, and hints at the
// targets whose template is not the one that a worker was given.
func (c *ConfigMaps) saw(name types.NamespacedName, m *corev1.ConfigMap) {
	var changed []targets.ConfigMapKey
	c.mu.Lock()
	c.events++
	for key, given := range c.given[name] {
		if now := textOf(m, key); now != given {
			c.given[name][key] = now
			changed = append(changed, targets.ConfigMapKey{Namespace: name.Namespace, Name: name.Name, Key: key})
		}
	}
	c.mu.Unlock()
	c.hint(changed)
}

// reread has a ConfigMap read again that was there for no worker.
func (c *ConfigMaps) reread(name types.NamespacedName) {
	var changed []targets.ConfigMapKey
	c.mu.Lock()
	for key, given := range c.given[name] {
		if given.noMap {
			delete(c.given[name], key)
			changed = append(changed, targets.ConfigMapKey{Namespace: name.Namespace, Name: name.Name, Key: key})
		}
	}
	c.mu.Unlock()
	c.hint(changed)
}

func (c *ConfigMaps) hint(changed []targets.ConfigMapKey) {
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
	if len(text) > targets.MaxTemplate {
		return templateText{size: len(text)}
	}
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

// follow has the namespaces of the templates in use followed, and no others.
func (c *ConfigMaps) follow(ctx context.Context, keys []targets.ConfigMapKey) {
	wanted := map[string][]targets.ConfigMapKey{}
	for _, key := range keys {
		wanted[key.Namespace] = append(wanted[key.Namespace], key)
	}
	c.mu.Lock()
	var ended []*mapSpace
	for namespace, s := range c.spaces {
		if wanted[namespace] == nil {
			ended = append(ended, s)
			delete(c.spaces, namespace)
			s.use(nil)
		}
	}
	var room []targets.ConfigMapKey
	for namespace, keys := range wanted {
		s := c.spaces[namespace]
		if s == nil {
			s = c.start(ctx, namespace)
		}
		room = append(room, s.use(keys)...)
	}
	c.mu.Unlock()
	c.hint(room)
	for _, s := range ended {
		s.stop()
		<-s.done
	}
}

func (c *ConfigMaps) note(what string, t trouble) {
	c.troubles.note(c.Reporter, "watch of template configmaps", what, t)
}
