package workers

import (
	"context"
	"sync"

	"github.com/secretsync/syncer/pkg/conjur/variables"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/targets/records"
)

// WildcardLister updates the targets that hold all variables when the list of variables
// changes.
type WildcardLister struct {
	Catalog *variables.Catalog
	Targets *records.Lane

	mu sync.Mutex // prevents an older list from replacing a newer one
}

// Lists reports whether a target holds all variables.
func (l *WildcardLister) Lists() bool {
	wild, _ := l.Targets.Wild()
	return wild
}

// Relist returns the targets that a new list changes.
func (l *WildcardLister) Relist(ctx context.Context) ([]targets.Key, error) {
	changed, err := l.Catalog.Refresh(ctx)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, expanded := l.Targets.Wild(); expanded && !changed {
		return nil, nil
	}
	var differ []targets.Key
	for _, change := range l.Targets.Expand(l.Catalog.IDs(), l.Catalog.Unset()) {
		differ = append(differ, change.Key)
	}
	return differ, nil
}

// List lets a worker continue if it has a target and no list was read yet.
func (l *WildcardLister) List(ctx context.Context) error {
	_, err := l.Relist(ctx)
	return err
}
