package records

import (
	"slices"

	"github.com/secretsync/syncer/pkg/targets"
)

// mostLeft bounds how many Secrets that are gone are remembered.
const mostLeft = 1000

// leftRevisions remembers the revisions of Secrets that are gone: who used one
// need not hear when it is made anew with the same content, and must hear
// when it is made anew with another, though nobody has used the new one.
type leftRevisions struct {
	byKey map[targets.Key]Revision
	order []targets.Key // in which they went
}

func (l *leftRevisions) keep(key targets.Key, r Revision) {
	if r.Annotations == nil {
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

// take returns what is remembered of a Secret that is back, and forgets it.
func (l *leftRevisions) take(key targets.Key) Revision {
	r, there := l.byKey[key]
	if there {
		delete(l.byKey, key)
		l.order = slices.DeleteFunc(l.order, func(other targets.Key) bool { return other == key })
	}
	return r
}
