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

// ConfigMapUsers finds targets by the ConfigMap templates that they use.
type ConfigMapUsers interface {
	ConfigMaps() []targets.ConfigMapKey
	ByConfigMap(keys ...targets.ConfigMapKey) []targets.Key
}

// ConfigMaps supplies the templates in ConfigMaps. It reads them for the workers and adds
// hints for the targets whose template changed.
//
// It stores the texts of the templates in use, up to targets.MaxTemplates per namespace.
// It stores nothing else of a ConfigMap.
type ConfigMaps struct {
	Client *kube.Client
	// Interval is the time between reads of ConfigMaps that may not be watched.
	Interval time.Duration
	Users    ConfigMapUsers
	Queue    queue.Enqueuer
	// Reporter is called when a watch starts or breaks. It remarks if only polling at
	// each interval is permitted.
	Reporter Remarker

	troubles watchTroubles // by ConfigMap, or namespace
	refresh  wake.Wake     // the templates in use may have changed

	mu     sync.Mutex
	spaces map[string]*mapSpace
	given  map[types.NamespacedName]map[string]templateText // texts of workers, unless hinted at since
	events int                                              // so far
}

// templateText is a template. The zero value means that it does not exist.
type templateText struct {
	there bool
	text  string
	noMap bool // its ConfigMap does not exist either
	bytes bool // it is in binaryData
	size  int  // of a text that is too large to store
}

// Text returns a template: from memory while its ConfigMap is watched, otherwise from the
// API server. While the API server is unreachable, it returns the last known text.
func (c *ConfigMaps) Text(ctx context.Context, key targets.ConfigMapKey) (string, error) {
	t, err := c.find(ctx, key)
	switch {
	case err != nil:
		return "", err
	case t.noMap:
		return "", fmt.Errorf("there is no configmap %s/%s to hold the template %s; create it", key.Namespace, key.Name, key.Key)
	case t.size > 0:
		return "", fmt.Errorf("the template %s of configmap %s/%s has %d bytes, and may have %d; divide it", key.Key, key.Namespace, key.Name, t.size, targets.MaxTemplate)
	case t.bytes:
		return "", fmt.Errorf("the template %s of configmap %s/%s is in binaryData, which is not for text; save it as UTF-8, and put it into data", key.Key, key.Namespace, key.Name)
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

// stored returns a template from memory if memory is current. Otherwise it returns the
// number of events so far.
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

// give gives a worker the API server's answer, unless an event arrived in the meantime:
// the answer may be older.
func (c *ConfigMaps) give(key targets.ConfigMapKey, t templateText, events int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.events != events {
		return false
	}
	if s := c.spaces[key.Namespace]; s != nil && !s.used[key] {
		return true // a change would go unnoticed
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

// saw processes the present state of a ConfigMap, nil if there is none. It adds hints for
// the targets whose template differs from the text that a worker received.
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

// reread makes workers read a ConfigMap again that did not exist when they asked for it.
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

// textOf finds a template in a ConfigMap, which is nil if there is none.
func textOf(m *corev1.ConfigMap, key string) templateText {
	if m == nil {
		return templateText{noMap: true}
	}
	text, there := m.Data[key]
	if len(text) > targets.MaxTemplate {
		return templateText{size: len(text)}
	}
	_, bytes := m.BinaryData[key]
	return templateText{there: there, text: text, bytes: bytes}
}

func mapOf(key targets.ConfigMapKey) types.NamespacedName {
	return types.NamespacedName{Namespace: key.Namespace, Name: key.Name}
}

// Refresh makes Run check again which templates are in use. It does not wait for that.
func (c *ConfigMaps) Refresh() {
	c.refresh.Rouse()
}

// Run watches the ConfigMaps in use until ctx ends. It returns after everything that it
// started has stopped.
func (c *ConfigMaps) Run(ctx context.Context) {
	var followed []targets.ConfigMapKey
	for ctx.Err() == nil {
		// Every new Secret refreshes, also one without a template, and waits for the lock
		// that follow holds.
		if used := c.Users.ConfigMaps(); !slices.Equal(used, followed) {
			c.follow(ctx, used)
			followed = used
		}
		select {
		case <-ctx.Done():
		case <-c.refresh.C():
		}
	}
	c.follow(ctx, nil)
}

// follow follows exactly the namespaces of the templates in use.
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

func (c *ConfigMaps) recordTrouble(what string, t trouble) {
	c.troubles.recordTrouble(c.Reporter, "watch of template configmaps", what, t)
}
