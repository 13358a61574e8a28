package pipeline

import (
	"context"
	"slices"
	"time"

	"github.com/secretsync/syncer/pkg/queue"
	"github.com/secretsync/syncer/pkg/sources"
	"github.com/secretsync/syncer/pkg/targets"
)

// templateLook is the time between looks at templates without an event; a look
// is a stat of each file, or a read of each ConfigMap that may not be watched.
const templateLook = 10 * time.Second

// texts is the templates of a pipeline's targets, wherever they are.
type texts struct {
	files      *sources.Templates
	configMaps *sources.ConfigMaps // nil when there is no cluster
	pipeline   *pipeline
}

func newTexts(p *pipeline) *texts {
	t := &texts{pipeline: p}
	t.files = &sources.Templates{
		Dir:        p.cfg.Folders.Templates,
		Interval:   templateLook,
		Files:      func() []string { return union(p, (*targets.Set).TemplateFiles) },
		ByTemplate: func(files ...string) []targets.Key { return union(p, byEach((*targets.Set).ByTemplate, files)) },
		Enqueue:    p.enqueue,
		Report:     p.troubles.Report,
	}
	if p.host != nil && p.host.cluster != nil {
		t.configMaps = &sources.ConfigMaps{
			Client:   p.host.cluster,
			Interval: templateLook,
			Wanted:   func() []targets.ConfigMapKey { return union(p, (*targets.Set).ConfigMaps) },
			ByConfigMap: func(places ...targets.ConfigMapKey) []targets.Key {
				return union(p, byEach((*targets.Set).ByConfigMap, places))
			},
			Enqueue: p.enqueue,
			Report:  p.troubles.Report,
			Remark:  p.troubles.Remark,
		}
	}
	return t
}

// configMapTimeout bounds the reading of a ConfigMap that is not watched.
const configMapTimeout = 10 * time.Second

// Text gives the template of a target, or of a Secret's group.
func (t *texts) Text(ctx context.Context, target *targets.Target) (string, error) {
	if place := target.Template.ConfigMap; place != (targets.ConfigMapKey{}) {
		ctx, cancel := context.WithTimeout(ctx, configMapTimeout)
		defer cancel()
		return t.configMaps.Text(ctx, place)
	}
	return t.files.Text(target)
}

// refresh has the ConfigMaps watched that are in use now.
func (t *texts) refresh() {
	if t.configMaps != nil {
		t.configMaps.Refresh()
	}
}

// sources are the watches on the templates that may be in use.
func (t *texts) sources() (run []func(context.Context)) {
	if len(t.files.Files()) > 0 {
		run = append(run, t.files.Run)
	}
	if t.configMaps != nil {
		run = append(run, t.configMaps.Run)
	}
	return run
}

// enqueue hints at targets, each in its lane.
func (p *pipeline) enqueue(h queue.Hint, keys ...targets.Key) {
	for _, l := range p.lanes {
		if own := slices.DeleteFunc(slices.Clone(keys), func(key targets.Key) bool { _, ok := l.targets.Get(key); return !ok }); len(own) > 0 {
			l.enqueue(h, own...)
		}
	}
}

// union puts together what is asked of each lane's targets.
func union[T any](p *pipeline, ask func(*targets.Set) []T) (all []T) {
	for _, l := range p.lanes {
		all = append(all, ask(l.targets)...)
	}
	return all
}

func byEach[N any](look func(*targets.Set, ...N) []targets.Key, names []N) func(*targets.Set) []targets.Key {
	return func(s *targets.Set) []targets.Key { return look(s, names...) }
}
