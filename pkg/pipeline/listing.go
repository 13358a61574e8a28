package pipeline

import (
	"context"
	"sync"

	"github.com/secretsync/syncer/pkg/conjur/variables"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/targets/records"
)

// listing updates the targets that hold all variables when the list of variables changes.
type listing struct {
	catalog *variables.Catalog
	set     *records.Lane

	mu sync.Mutex // prevents an older list from replacing a newer one
}

// Relist calls refresh for each tick of the poll. It does nothing if no target holds all
// variables.
func (l *listing) Relist(ctx context.Context) ([]targets.Key, error) {
	if wild, _ := l.set.Wild(); !wild {
		return nil, nil
	}
	return l.refresh(ctx)
}

// refresh returns the targets that a new list changes.
func (l *listing) refresh(ctx context.Context) ([]targets.Key, error) {
	changed, err := l.catalog.Refresh(ctx)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, expanded := l.set.Wild(); expanded && !changed {
		return nil, nil
	}
	var differ []targets.Key
	for _, change := range l.set.Expand(l.catalog.IDs(), l.catalog.Unset()) {
		differ = append(differ, change.Key)
	}
	return differ, nil
}

// List lets a worker continue if it has a target and no list was read yet.
func (l *listing) List(ctx context.Context) error {
	_, err := l.refresh(ctx)
	return err
}
