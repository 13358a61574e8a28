package main

import (
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/secretsync/syncer/pkg/render"
	"github.com/secretsync/syncer/pkg/targets"
)

// expand puts the variables that have a value in the place of entries that
// stand for all variables. As run does it, it leaves out what the format cannot
// hold, and warns of that.
func (o *offline) expand(warnings io.Writer, ts []*targets.Target) []*targets.Target {
	ids := slices.Collect(maps.Keys(o.values))
	expanded := slices.Clone(ts)
	for i, t := range ts {
		if !t.Wildcard() {
			continue
		}
		var left []string
		expanded[i], left = o.fit(t.Expand(ids))
		for _, why := range left {
			fmt.Fprintf(warnings, "warning: %s: %s\n", t.Key, oneLine(why))
		}
	}
	return expanded
}

// fit leaves out of an expanded target what its formats cannot hold.
func (o *offline) fit(t *targets.Target) (fitting *targets.Target, left []string) {
	if t.Secret == nil {
		return o.fitPart(t)
	}
	whole, secret := *t, *t.Secret
	secret.Groups = slices.Clone(secret.Groups)
	whole.Secret = &secret
	for i, group := range secret.Groups {
		var more []string
		secret.Groups[i], more = o.fitPart(group)
		for _, why := range more {
			left = append(left, group.Group+": "+why)
		}
	}
	return &whole, left
}

// fitPart is fit for a file or for a group of a Secret. When nothing would be
// left, or what does not fit has an entry of its own, it is as it was.
func (o *offline) fitPart(t *targets.Target) (fitting *targets.Target, left []string) {
	reduced := *t
	reduced.Entries = nil
	for _, e := range t.Entries {
		if fault := render.CheckAlias(t.Format, e.Alias); fault != nil && t.Expanded[e.Variable] {
			left = append(left, fmt.Sprintf("variable %q is left out: its id cannot be a key of format %s: %v", e.Variable, t.Format, fault))
			continue
		}
		reduced.Entries = append(reduced.Entries, e)
	}
	if t.Format != targets.FormatTemplate { // which holds every value
		_, err := render.Render(&reduced, "", o.items(&reduced))
		for _, unfit := range render.ValueErrors(err) {
			if !t.Expanded[unfit.Alias] {
				return t, nil
			}
			reduced.Entries = slices.DeleteFunc(reduced.Entries, func(e targets.Entry) bool { return e.Alias == unfit.Alias })
			left = append(left, fmt.Sprintf("variable %q is left out: %v", unfit.Alias, unfit))
		}
	}
	if len(reduced.Entries) == 0 {
		return t, nil
	}
	return &reduced, left
}
