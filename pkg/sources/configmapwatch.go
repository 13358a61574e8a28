package sources

import (
	"context"
	"maps"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/secretsync/syncer/pkg/kube"
	"github.com/secretsync/syncer/pkg/queue"
	"github.com/secretsync/syncer/pkg/targets"
)

// mapWatch is the watch on one ConfigMap.
type mapWatch struct {
	keys []string // those in use, sorted
	stop context.CancelFunc
	done chan struct{}
}

func (w *mapWatch) end() {
	w.stop()
	<-w.done
}

// Run watches the ConfigMaps in use until ctx ends, and returns when all that
// it started has.
func (c *ConfigMaps) Run(ctx context.Context) {
	watches := map[types.NamespacedName]*mapWatch{}
	var wg sync.WaitGroup
	defer wg.Wait()
	for {
		wanted := c.wanted()
		for name, w := range watches {
			if !slices.Equal(w.keys, wanted[name]) {
				w.end()
				delete(watches, name)
				c.forget(name, wanted[name])
			}
		}
		for name, keys := range wanted {
			if watches[name] == nil {
				watching, stop := context.WithCancel(ctx)
				w := &mapWatch{keys: keys, stop: stop, done: make(chan struct{})}
				watches[name] = w
				wg.Go(func() {
					defer close(w.done)
					defer stop()
					c.follow(name, keys).run(watching)
				})
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-c.signal():
		}
	}
}

// wanted sorts the templates in use by their ConfigMap.
func (c *ConfigMaps) wanted() map[types.NamespacedName][]string {
	byMap := map[types.NamespacedName][]string{}
	for _, key := range c.Wanted() {
		byMap[mapOf(key)] = append(byMap[mapOf(key)], key.Key)
	}
	for name, keys := range byMap {
		slices.Sort(keys)
		byMap[name] = slices.Compact(keys)
	}
	return byMap
}

// follow makes the watch on one ConfigMap.
func (c *ConfigMaps) follow(name types.NamespacedName, keys []string) *follow {
	wanted := func(key string) bool { _, found := slices.BinarySearch(keys, key); return found }
	here := func(texts kube.Texts) { c.saw(name, keys, texts.Data) }
	trouble := func(err error) { c.trouble(name, err) }
	watch := c.Client.WatchConfigMap(name.Namespace, name.Name, wanted, kube.Handler[kube.Texts]{
		Replace: func(all []kube.Texts) {
			c.watched(name, true)
			if len(all) == 0 {
				c.saw(name, keys, nil)
			}
			for _, texts := range all {
				here(texts)
			}
		},
		Put:    here,
		Delete: func(string, string) { c.saw(name, keys, nil) },
		Well:   func() { trouble(nil) },
	})
	look := func(ctx context.Context) error {
		c.watched(name, false) // there is no watch; a worker that wants a text asks for it
		texts, err := c.Client.ConfigMap(ctx, name.Namespace, name.Name, wanted)
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		here(texts)
		return nil
	}
	return &follow{watch: watch.Run, look: look, interval: c.Interval, failed: trouble}
}

// saw takes the texts that a ConfigMap has under its keys in use, nil when there
// is none, and hints at the targets of those that are not as they were.
func (c *ConfigMaps) saw(name types.NamespacedName, keys []string, data map[string]string) {
	var changed []targets.ConfigMapKey
	c.mu.Lock()
	for _, k := range keys {
		key := targets.ConfigMapKey{Namespace: name.Namespace, Name: name.Name, Key: k}
		if c.set(key, textOf(data, k)) {
			changed = append(changed, key)
		}
	}
	c.mu.Unlock()
	if len(changed) > 0 {
		c.Enqueue(queue.Hint{Trigger: "template", Wakes: true}, c.ByConfigMap(changed...)...)
	}
}

func (c *ConfigMaps) watched(name types.NamespacedName, live bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.live == nil {
		c.live = map[types.NamespacedName]bool{}
	}
	c.live[name] = live
}

// forget drops what is known of a ConfigMap that is no longer watched, but for
// the keys in use.
func (c *ConfigMaps) forget(name types.NamespacedName, keys []string) {
	c.trouble(name, nil)
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.live, name)
	maps.DeleteFunc(c.texts, func(key targets.ConfigMapKey, _ templateText) bool {
		return mapOf(key) == name && !slices.Contains(keys, key.Key)
	})
}

func (c *ConfigMaps) trouble(name types.NamespacedName, err error) {
	c.troubles.note(c.Report, "watch of template configmaps", name.String(), err)
}
