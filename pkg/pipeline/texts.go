package pipeline

import (
	"context"
	"time"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/pkg/health"
	"github.com/secretsync/syncer/pkg/kube"
	"github.com/secretsync/syncer/pkg/sources"
	"github.com/secretsync/syncer/pkg/targets"
)

// templateLook is the time between checks of templates without an event. A check is a
// stat of each file, or a read of each ConfigMap that Syncer may not watch.
const templateLook = 10 * time.Second

// texts are the templates of a pipeline's targets, in files or ConfigMaps.
type texts struct {
	files      *sources.Templates
	configMaps *sources.ConfigMaps
	watched    []source // those in ConfigMaps, if there is a cluster
	follows    bool     // false in a one-shot process, which watches none
}

func newTexts(cfg *config.Config, cluster *kube.Client, users *lanes, troubles *health.Troubles) *texts {
	t := &texts{
		files:      &sources.Templates{Dir: cfg.Folders.Templates, Interval: templateLook, Users: users, Queue: users, Reporter: troubles},
		configMaps: &sources.ConfigMaps{Client: cluster, Interval: templateLook, Users: users, Queue: users, Reporter: troubles},
		follows:    !cfg.Mode.OneShot(),
	}
	if cluster != nil {
		t.watched = []source{t.configMaps}
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
func (t *texts) refresh() { t.configMaps.Refresh() }

// sources returns the watches on the templates that may be in use.
func (t *texts) sources() []source {
	switch {
	case !t.follows:
		return nil
	case len(t.files.Users.TemplateFiles()) > 0:
		return append([]source{t.files}, t.watched...)
	}
	return t.watched
}
