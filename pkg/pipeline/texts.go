package pipeline

import (
	"context"
	"time"

	"github.com/secretsync/syncer/pkg/sources"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/targets/records"
)

// templateLook is the time between checks of templates without an event. A check is a
// stat of each file, or a read of each ConfigMap that Syncer may not watch.
const templateLook = 10 * time.Second

// texts are the templates of a pipeline's targets, in files or ConfigMaps.
type texts struct {
	files      *sources.Templates
	configMaps *sources.ConfigMaps // nil without a cluster
	pipeline   *pipeline
}

func newTexts(p *pipeline) *texts {
	t := &texts{pipeline: p}
	t.files = &sources.Templates{
		Dir:      p.config().Folders.Templates,
		Interval: templateLook,
		Users:    templateUsers{p},
		Queue:    p,
		Reporter: p.troubles,
	}
	if p.host != nil && p.host.cluster != nil {
		t.configMaps = &sources.ConfigMaps{
			Client:   p.host.cluster,
			Interval: templateLook,
			Users:    templateUsers{p},
			Queue:    p,
			Reporter: p.troubles,
		}
	}
	return t
}

// configMapTimeout bounds the read of a ConfigMap that is not watched.
const configMapTimeout = 10 * time.Second

// Text returns the template of a target, or of a Secret's group.
func (t *texts) Text(ctx context.Context, target *targets.Target) (string, error) {
	if place := target.Template.ConfigMap; place != (targets.ConfigMapKey{}) {
		ctx, cancel := context.WithTimeout(ctx, configMapTimeout)
		defer cancel()
		return t.configMaps.Text(ctx, place)
	}
	return t.files.Text(target)
}

// refresh updates the watches to the ConfigMaps in use.
func (t *texts) refresh() {
	if t.configMaps != nil {
		t.configMaps.Refresh()
	}
}

// sources returns the watches on the templates that may be in use.
func (t *texts) sources() (all []source) {
	if len(t.files.Users.TemplateFiles()) > 0 {
		all = append(all, t.files)
	}
	if t.configMaps != nil {
		all = append(all, t.configMaps)
	}
	return all
}

// templateUsers finds the targets of all lanes by their templates.
type templateUsers struct{ *pipeline }

func (u templateUsers) TemplateFiles() []string { return union(u, (*records.Lane).TemplateFiles) }

func (u templateUsers) ByTemplate(files ...string) []targets.Key {
	return union(u, func(l *records.Lane) []targets.Key { return l.ByTemplate(files...) })
}

func (u templateUsers) ConfigMaps() []targets.ConfigMapKey {
	return union(u, (*records.Lane).ConfigMaps)
}

func (u templateUsers) ByConfigMap(keys ...targets.ConfigMapKey) []targets.Key {
	return union(u, func(l *records.Lane) []targets.Key { return l.ByConfigMap(keys...) })
}

// union combines the answers of all lanes.
func union[T any](u templateUsers, ask func(*records.Lane) []T) (all []T) {
	for _, l := range u.lanes() {
		all = append(all, ask(l.targets)...)
	}
	return all
}
