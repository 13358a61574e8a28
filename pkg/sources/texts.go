package sources

import (
	"context"
	"time"

	"github.com/secretsync/syncer/pkg/kube"
	"github.com/secretsync/syncer/pkg/queue"
	"github.com/secretsync/syncer/pkg/targets"
)

const (
	// templateInterval is the time between checks of templates without an event. A check
	// is a stat of each file, or a read of each ConfigMap that Syncer may not watch.
	templateInterval = 10 * time.Second
	// configMapTimeout bounds the read of a ConfigMap that is not watched.
	configMapTimeout = 10 * time.Second
)

// Source runs until ctx ends.
type Source interface{ Run(ctx context.Context) }

// TemplateUsers finds targets by their templates.
type TemplateUsers interface {
	FileUsers
	ConfigMapUsers
}

// TemplateTexts are the templates of all targets, in files or ConfigMaps.
type TemplateTexts struct {
	files      *Templates
	configMaps *ConfigMaps // without a client if there is no cluster
}

// NewTemplateTexts returns the templates in a folder and in a cluster. cluster is nil if
// there is none.
func NewTemplateTexts(folder string, cluster *kube.Client, users TemplateUsers, queue queue.Enqueuer, reporter Remarker) *TemplateTexts {
	return &TemplateTexts{
		files:      &Templates{Dir: folder, Interval: templateInterval, Users: users, Queue: queue, Reporter: reporter},
		configMaps: &ConfigMaps{Client: cluster, Interval: templateInterval, Users: users, Queue: queue, Reporter: reporter},
	}
}

// Text returns the template of a target, or of a Secret's group. It returns "" for a target
// without a template.
func (t *TemplateTexts) Text(ctx context.Context, target *targets.Target) (string, error) {
	if place := target.Template.ConfigMap; place != (targets.ConfigMapKey{}) {
		ctx, cancel := context.WithTimeout(ctx, configMapTimeout)
		defer cancel()
		return t.configMaps.Text(ctx, place)
	}
	return t.files.Text(target)
}

// Refresh updates the watches to the ConfigMaps in use.
func (t *TemplateTexts) Refresh() { t.configMaps.Refresh() }

// Watches returns the watches on the templates that may be in use.
func (t *TemplateTexts) Watches() (all []Source) {
	if len(t.files.Users.TemplateFiles()) > 0 {
		all = append(all, t.files)
	}
	if t.configMaps.Client != nil {
		all = append(all, t.configMaps)
	}
	return all
}
