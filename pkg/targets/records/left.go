package records

import (
	"slices"

	"github.com/secretsync/syncer/pkg/targets"
)

// mostLeft limits how many deleted Secrets are remembered.
const mostLeft = 1000

// leftRevisions remembers the revisions of deleted Secrets. A Secret that is created again
// continues from its old revision. With the same content the revision stays, and no
// workload is restarted. With other content it rises, and the workloads that run with the
// old content are restarted.
type leftRevisions struct {
	byKey map[targets.Key]Revision
	order []targets.Key // in the order of deletion
}

func (l *leftRevisions) keep(key targets.Key, r Revision) {
	if r.Stamp == (Stamp{}) {
		return
	}
	if l.byKey == nil {
		l.byKey = map[targets.Key]Revision{}
	}
	if _, there := l.byKey[key]; !there {
		l.order = append(l.order, key)
	}
	l.byKey[key] = r
	if len(l.order) > mostLeft {
		delete(l.byKey, l.order[0])
		l.order = l.order[1:]
	}
}

// take returns the revision of a Secret that exists again, and forgets it.
func (l *leftRevisions) take(key targets.Key) Revision {
	r, there := l.byKey[key]
	if there {
		delete(l.byKey, key)
		l.order = slices.DeleteFunc(l.order, func(other targets.Key) bool { return other == key })
	}
	return r
}
