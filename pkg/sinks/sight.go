package sinks

import (
	"encoding/json"

	"github.com/secretsync/syncer/pkg/targets"
)

// sight is a target as it was seen, or left. As a text it is the version of
// the target's status.
type sight struct {
	Path   string         // where it was
	Format targets.Format // and how it lay
	Stamps stamps
}

// stamps is, by path below the secrets folder, all that a target consists of.
// The zero stamp stands for a name where nothing was.
type stamps map[string]stamp

// sightOf returns how a target was found or left. What it had at another path
// before is former then, if it was as it had been left.
func sightOf(r targets.Record, now stamps) targets.Sight {
	text, err := json.Marshal(sight{r.Spec.File.Path, r.Spec.Format, now})
	if err != nil {
		panic(err) // names and numbers always encode
	}
	status := r.Status
	after := targets.Sight{Version: string(text), Former: status.Former}
	if last, ok := parseSight(status.Version); ok && last.Path != r.Spec.File.Path &&
		status.Ours && !status.WriteFailed && !status.RemovalFailed && last.there() {
		after.Former = append(after.Former[:len(after.Former):len(after.Former)], status.Version)
	}
	return after
}

// parseSight reads a version; false when it is none.
func parseSight(version string) (s sight, ok bool) {
	return s, json.Unmarshal([]byte(version), &s) == nil
}

// there reports whether something was there.
func (s sight) there() bool {
	for _, seen := range s.Stamps {
		if seen != (stamp{}) {
			return true
		}
	}
	return false
}

// target is what lay there then.
func (s sight) target() *targets.Target {
	return &targets.Target{Format: s.Format, File: targets.File{Path: s.Path, Mode: 0o600}}
}
