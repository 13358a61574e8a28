package rotate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/secretsync/syncer/pkg/versions"
)

// taken returns which variables of a set cannot serve as the set uses them, by
// their values: another configuration may have a set in one of them.
func (r *Rotator) taken(ctx context.Context, s *rotated) (problems []string) {
	add := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	for _, id := range slices.Sorted(maps.Keys(s.Publish)) {
		if what := r.holds(ctx, id, s.Publish[id].Text == ""); what != "" {
			add("%q holds %s, which publishing would replace; publish to another variable", id, what)
		}
	}
	for _, id := range slices.Sorted(maps.Values(s.Adopt)) {
		if what := r.holds(ctx, id, false); what != "" {
			add("%q holds %s; adopt another variable", id, what)
		}
	}
	if s.Generate.X509 == nil || s.Generate.X509.CA == "" {
		return problems
	}
	held, err := Set{Conjur: r.config.Conjur, ID: s.Generate.X509.CA}.read(ctx)
	if _, listed := r.sets[s.Generate.X509.CA]; err == nil && held.Document == nil {
		if listed { // it begins by itself
			return problems
		}
		err = errors.New("the set has not begun")
	}
	if err != nil {
		add("cannot read the certificate's authority %q: %v", s.Generate.X509.CA, err)
		return problems
	}
	if primary, _ := held.Primary(); primary.Parts["crt"].Len() == 0 || primary.Parts["private"].Len() == 0 {
		add("the primary of %q has no parts crt and private; name the set of an authority", s.Generate.X509.CA)
	}
	return problems
}

// holds names what a variable holds that steers rotation; "" for any other value.
// With view, it may hold a set as others are to see it, without an identity.
func (r *Rotator) holds(ctx context.Context, id string, view bool) string {
	values := r.config.Conjur.Variable(ctx, id, "")
	value, found := values.Found[id]
	if !found {
		return "" // the rights are checked elsewhere
	}
	defer value.Wipe()
	if _, err := parseControl(value.Bytes()); err == nil {
		return "the commands of a set"
	}
	if !versions.IsSet(value.Bytes()) {
		return ""
	}
	if doc, err := versions.Parse(value.Bytes()); view && err == nil && doc.Identity == "" {
		return ""
	}
	return "a set of versions"
}
