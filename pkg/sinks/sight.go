package sinks

import (
	"maps"
	"slices"
	"strings"

	"github.com/secretsync/syncer/pkg/records"
	"github.com/secretsync/syncer/pkg/targets"
)

// sight is a target as it was seen, or left. As a text it is the version of
// the target's status.
type sight struct {
	path   string         // where it was
	format targets.Format // and how it lay
	seen   string         // the text of its stamps
}

// stamps is, by path below the secrets folder, all that a target consists of.
// The zero stamp stands for a name where nothing was.
type stamps map[string]stamp

// end is behind each name in a text; a name in a file system has none of it.
const end = "\x00"

// text returns the stamps in the order of their names, as they are compared with
// what is there.
func (s stamps) text() string {
	var text []byte
	for _, name := range slices.Sorted(maps.Keys(s)) {
		text = s[name].append(append(append(text, name...), end...))
	}
	return string(text)
}

// sightOf returns how a target was found or left. What it had at another path
// before is former then, if it was as it had been left.
func sightOf(r records.Record, now stamps) records.Sight {
	status := r.Status
	after := records.Sight{Version: sight{r.Spec.File.Path, r.Spec.Format, now.text()}.version(), Former: status.Former}
	if last, ok := parseSight(status.Version); ok && last.path != r.Spec.File.Path &&
		status.Ours && !status.WriteFailed && !status.RemovalFailed && last.there() {
		after.Former = append(after.Former[:len(after.Former):len(after.Former)], status.Version)
	}
	return after
}

func (s sight) version() string { return s.path + end + string(s.format) + end + s.seen }

// parseSight reads a version; false when it is none. It is called for each target at
// each look.
func parseSight(version string) (s sight, ok bool) {
	path, rest, _ := strings.Cut(version, end)
	format, seen, ok := strings.Cut(rest, end)
	return sight{path, targets.Format(format), seen}, ok
}

// there reports whether something was there.
func (s sight) there() bool { return !s.shows(func(string) (stamp, bool) { return stamp{}, true }) }

// shows reports whether all is as it was; at returns the stamp of a name, if it is
// known.
func (s sight) shows(at func(name string) (now stamp, known bool)) bool {
	var text [stampSize]byte
	for seen := s.seen; seen != ""; {
		name, then, _ := strings.Cut(seen, end)
		now, known := at(name)
		if !known || len(then) < stampSize || string(now.append(text[:0])) != then[:stampSize] {
			return false
		}
		seen = then[stampSize:]
	}
	return true
}

// target is what lay there then.
func (s sight) target() *targets.Target {
	return &targets.Target{Format: s.format, File: targets.File{Path: s.path, Mode: 0o600}}
}
