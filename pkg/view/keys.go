package view

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/secretsync/syncer/internal/brief"
	"github.com/secretsync/syncer/pkg/rotation/consumers"
	"github.com/secretsync/syncer/pkg/targets/records"
)

// Noted returns the application's note of the versions of a set that it has.
type Noted func(set string) (holding consumers.Holding, noted bool, err error)

// Keys returns a handler that answers GET /keys?set=ID with the versions of a set that the
// Pod has. They come from the application's note. Without a note, they are the versions in
// all files of the set. If there is only one set, the id may be omitted. lanes returns false
// if no files are delivered now.
func Keys(lanes func() (all []Lane, noted Noted, delivers bool)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		holding, err := holdingOf(lanes, r.URL.Query().Get("set"))
		w.Header().Set("Cache-Control", "no-store")
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(holding) // on an error the client has disconnected
	})
}

func holdingOf(lanes func() (all []Lane, noted Noted, delivers bool), set string) (holding consumers.Holding, err error) {
	all, noted, delivers := lanes()
	if !delivers {
		return holding, errors.New("this process delivers no files now")
	}
	sets := map[string][]records.Record{}
	for _, l := range all {
		for _, r := range l.Targets.Records() {
			if len(r.Spec.Faults) > 0 && r.Status.Version == "" && !r.Status.TargetEmpty {
				return holding, fmt.Errorf("it is not known which sets %s shows: %s", r.Spec.Key, brief.List(r.Spec.Faults))
			}
			for id := range setsOf(r) {
				sets[id] = append(sets[id], r)
			}
		}
	}
	for id := range sets {
		if set == "" && len(sets) == 1 {
			set = id
		}
	}
	if sets[set] == nil {
		return holding, fmt.Errorf("of the set %.200q no file is delivered here; ask with ?set=ID", set)
	}
	if holding, found, err := noted(set); found || err != nil {
		return holding, err
	}
	return filesHold(set, sets[set])
}

// setsOf returns the sets that a file shows, or should show. A faulty definition names no
// sets, but the file stays.
func setsOf(r records.Record) map[string]bool {
	ids := map[string]bool{}
	for id := range r.Status.Sets {
		ids[id] = true
	}
	for _, e := range r.Spec.Entries {
		if e.IsSet() {
			ids[e.Variable] = true
		}
	}
	return ids
}

// filesHold returns the versions that all files of a set contain. It returns no primary
// if the files differ in it.
func filesHold(set string, files []records.Record) (holding consumers.Holding, err error) {
	var missing []string
	for i, r := range files {
		has, ok := r.Status.Sets[set]
		switch {
		case !ok:
			missing = append(missing, string(r.Spec.Key))
		case i == 0:
			holding = consumers.Holding{IDs: slices.Clone(has.IDs), Primary: has.Primary}
		default:
			holding.IDs = slices.DeleteFunc(holding.IDs, func(id string) bool { return !slices.Contains(has.IDs, id) })
			if holding.Primary != has.Primary {
				holding.Primary = ""
			}
		}
	}
	if len(missing) > 0 {
		return holding, fmt.Errorf("not delivered yet: %s", brief.List(missing))
	}
	return holding, nil
}
