package pipeline

import (
	"maps"
	"sync"
	"sync/atomic"

	"github.com/secretsync/syncer/pkg/queue"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/targets/records"
)

// lanes are the lanes of a pipeline, one for each identity. They find the lane of a
// target.
type lanes struct{ now atomic.Value }

func (ls *lanes) set(all []*lane) { ls.now.Store(all) }

func (ls *lanes) all() []*lane {
	all, _ := ls.now.Load().([]*lane)
	return all
}

func stopAll(lanes []*lane) { each(lanes, (*lane).stop) }

// each calls f for all lanes concurrently, and waits.
func each(lanes []*lane, f func(*lane)) {
	var wg sync.WaitGroup
	for _, l := range lanes {
		wg.Go(func() { f(l) })
	}
	wg.Wait()
}

// Enqueue sends each hint to the lane of its target.
func (ls *lanes) Enqueue(h queue.Hint, keys ...targets.Key) {
	for _, l := range ls.all() {
		var own []targets.Key
		for _, key := range keys {
			if _, ok := l.targets.Get(key); ok {
				own = append(own, key)
			}
		}
		if len(own) > 0 {
			l.Enqueue(h, own...)
		}
	}
}

// apply enqueues a sync for changed targets, and forgets deleted ones.
func (ls *lanes) apply(h queue.Hint, changes []records.Change) {
	for _, l := range ls.all() {
		var own []targets.Key
		for _, c := range changes {
			switch {
			case c.Lane != l.identity.Name:
			case c.Gone:
				l.forget(c.Key)
			default:
				own = append(own, c.Key)
			}
		}
		if len(own) > 0 {
			l.Enqueue(h, own...)
		}
	}
}

func (ls *lanes) keys() []targets.Key { return union(ls, (*records.Lane).Keys) }

func (ls *lanes) expiries() map[targets.Key]targets.Expiry {
	all := map[targets.Key]targets.Expiry{}
	for _, l := range ls.all() {
		maps.Copy(all, l.targets.Expiries())
	}
	return all
}

// TemplateFiles, ByTemplate, ConfigMaps and ByConfigMap find targets by their templates.

func (ls *lanes) TemplateFiles() []string { return union(ls, (*records.Lane).TemplateFiles) }

func (ls *lanes) ByTemplate(files ...string) []targets.Key {
	return union(ls, func(l *records.Lane) []targets.Key { return l.ByTemplate(files...) })
}

func (ls *lanes) ConfigMaps() []targets.ConfigMapKey { return union(ls, (*records.Lane).ConfigMaps) }

func (ls *lanes) ByConfigMap(keys ...targets.ConfigMapKey) []targets.Key {
	return union(ls, func(l *records.Lane) []targets.Key { return l.ByConfigMap(keys...) })
}

// union combines the answers of all lanes.
func union[T any](ls *lanes, ask func(*records.Lane) []T) (all []T) {
	for _, l := range ls.all() {
		all = append(all, ask(l.targets)...)
	}
	return all
}
