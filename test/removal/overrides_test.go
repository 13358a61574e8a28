package removal

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/secretsync/syncer/pkg/conjur/variables"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/targets/records"
)

// mayHaveOwn makes some entries of a target prefer a node-specific variable, and others
// require one.
func (h *history) mayHaveOwn(t *targets.Target) {
	for i, e := range t.Entries {
		switch own := "node/n1/" + e.Variable; h.rand.IntN(4) {
		case 0, 1:
			t.Entries[i].Override = own
		case 2:
			t.Entries[i].Variable = own
		}
	}
}

// beginWithout deletes some node-specific variables before the history begins.
func (h *history) beginWithout() {
	for _, id := range h.ids {
		if strings.HasPrefix(id, "node/") && h.rand.IntN(2) == 0 {
			h.change("not there yet:", []string{id}, missing, false)
		}
	}
	h.judge.note()
}

func (h *history) givenAs(key targets.Key) *targets.Target {
	return h.given[slices.IndexFunc(h.given, func(t *targets.Target) bool { return t.Key == key })]
}

// ids lists all variables of targets, also the node-specific ones.
func ids(ts ...*targets.Target) (all []string) {
	for _, t := range ts {
		for _, e := range t.Entries {
			all = append(all, idsOf(e)...)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func idsOf(e targets.Entry) []string {
	if e.Override == "" {
		return []string{e.Variable}
	}
	return []string{e.Variable, e.Override}
}

// mayFall reports whether an entry may read the general variable: the node-specific one has
// no value now, or the server's answers prove that it is gone.
func (j *judge) mayFall(key targets.Key, e targets.Entry, now time.Time) bool {
	own := j.history.server.vars[e.Override]
	if own == nil {
		return true
	}
	var values map[string]string // alias → value
	_ = json.Unmarshal([]byte(j.history.sink.whole(key)), &values)
	value := values[e.Alias]
	_, has := own.lives[value]
	return value == "" || !has || j.proven(own, now)
}

// falls checks each write that contains a general value although a node-specific one may
// exist.
func (j *judge) falls(t *targets.Target) {
	for i, e := range j.history.givenAs(t.Key).Entries {
		if t.Entries[i].Variable != e.Override && !j.mayFall(t.Key, e, time.Now()) {
			j.history.tell("%s is written", t.Key)
			j.history.Errorf("%s falls back from %s without proof: %s", t.Key, e.Override, j.facts(t))
		}
	}
}

// list lists the visible variables, and one that no target uses.
func (m *model) list(w http.ResponseWriter, r *http.Request) {
	all := []map[string]string{{"id": account + ":variable:app/other"}}
	for id := range m.vars {
		if s := m.show(id).state; s == there || s == forbidden {
			all = append(all, map[string]string{"id": account + ":variable:" + id})
		}
	}
	slices.SortFunc(all, func(a, b map[string]string) int { return strings.Compare(a["id"], b["id"]) })
	text, _ := json.Marshal(all)
	w.Header().Set("Content-Type", jsonT)
	tagged(w, r, strings.ReplaceAll(string(text), `"`, ""), func() { _, _ = w.Write(text) })
}

// listing keeps the targets up to date with the existing variables, like the listing of the
// pipeline.
type listing struct {
	catalog *variables.Catalog
	set     *records.Lane
	mu      sync.Mutex
}

func (l *listing) Lists() bool {
	wild, _ := l.set.Wild()
	return wild
}

func (l *listing) Relist(ctx context.Context) (differ []targets.Key, err error) {
	if _, err := l.catalog.Refresh(ctx); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, change := range l.set.Expand(l.catalog.IDs(), l.catalog.Unset()) {
		differ = append(differ, change.Key)
	}
	return differ, nil
}

func (l *listing) List(ctx context.Context) error {
	_, err := l.Relist(ctx)
	return err
}
