package pipeline

import (
	"context"
	"slices"
	"sync"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/pkg/conjur/variables"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/targets/records"
)

// budgetForAll is the client's budget of requests where a target holds all
// variables: among them may be many that have no value or may not be read, and
// a process that delivers once has only some retries to find out which.
const budgetForAll = 512

// requestBudget is the client's budget; 0 is its default.
func requestBudget(cfg *config.Config) int {
	if anyWildcard(cfg.Targets) {
		return budgetForAll
	}
	return 0
}

func anyWildcard(ts []*targets.Target) bool {
	return slices.ContainsFunc(ts, (*targets.Target).Wildcard)
}

// listing keeps the targets that hold all variables in step with the
// variables that there are.
type listing struct {
	catalog *variables.Catalog
	set     *records.Lane

	mu sync.Mutex // no older list is taken after a newer one
}

// Relist is refresh for each tick of the poll; while no target holds all
// variables, nobody needs the list.
func (l *listing) Relist(ctx context.Context) ([]targets.Key, error) {
	if wild, _ := l.set.Wild(); !wild {
		return nil, nil
	}
	return l.refresh(ctx)
}

// refresh returns the targets that differ because of a new list.
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

// List lets a worker go on that has a target before there was any list.
func (l *listing) List(ctx context.Context) error {
	_, err := l.refresh(ctx)
	return err
}
