package render

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/secretsync/syncer/internal/brief"
	"github.com/secretsync/syncer/pkg/rotation/versions"
	"github.com/secretsync/syncer/pkg/targets"
)

// DeliveredSet returns the summary of a set of versions that a target displays, as
// of now. It returns an error if the value cannot be delivered as a set.
func DeliveredSet(value []byte) (targets.DeliveredSet, error) {
	doc, err := readSet(value)
	if err != nil {
		return targets.DeliveredSet{}, err
	}
	primary, _ := doc.Primary()
	set := targets.DeliveredSet{Step: doc.Step, Stage: doc.Stage(), Primary: primary.ID, Awaits: doc.Awaits(), Since: time.Now()}
	for _, v := range doc.Usable() {
		set.IDs = append(set.IDs, v.ID)
	}
	return set, nil
}

func readSet(value []byte) (*versions.Document, error) {
	doc, err := versions.Parse(value)
	if err != nil {
		return nil, err
	}
	if _, ok := doc.Primary(); !ok {
		return nil, errors.New("the set has no primary yet")
	}
	return doc, nil
}

// IsSet reports whether a value is a set of versions.
func IsSet(value []byte) bool { return versions.IsSet(value) }

// checkSets reports sets that the format cannot hold, and invalid patterns.
func checkSets(format targets.Format, entries []targets.Entry) error {
	var errs []error
	for _, e := range entries {
		if !e.IsSet() {
			continue
		}
		prefix, pattern := strings.CutSuffix(e.Alias, "*")
		fault := ""
		switch format {
		case targets.FormatJWKS, targets.FormatJWKSPublic, targets.FormatTemplate:
		case targets.FormatDirectory:
			if fault = fileAlias(prefix + "id"); !pattern {
				fault = `a set has several files; write "*", or a prefix and *`
			}
		default:
			fault = "it is a set; use format directory, template, jwks or jwks-public"
		}
		if fault != "" {
			errs = append(errs, fmt.Errorf("alias %q does not suit format %s: %s", brief.Input(e.Alias), format, fault))
		}
	}
	return errors.Join(errs...)
}

// addSet adds the entries of a set.
func (v *values) addSet(format targets.Format, e targets.Entry, value []byte) error {
	doc, err := readSet(value)
	if err != nil {
		return fmt.Errorf("set %q: %w", brief.Input(e.Variable), err)
	}
	for _, version := range doc.Versions {
		for _, part := range version.Parts {
			v.own = append(v.own, part.Bytes())
		}
	}
	prefix := strings.TrimSuffix(e.Alias, "*")
	primary, _ := doc.Primary()
	v.expire(e.Variable, primary.Expires()) // other versions leave the set before they expire
	switch {
	case format != targets.FormatDirectory:
		v.entries = append(v.entries, entry{alias: e.Alias, set: doc})
	case e.ContentType == targets.ContentKeys:
		for _, version := range doc.Usable() {
			suffix := ""
			if version.State == versions.Primary {
				suffix = ".primary"
			}
			v.addParts(e.Variable, prefix+version.ID+".", suffix, version)
		}
	default:
		v.addParts(e.Variable, prefix, "", primary)
		if former, ok := doc.Former(); ok {
			v.addParts(e.Variable, prefix, ".old", former)
		}
	}
	return nil
}

func (v *values) addParts(set, prefix, suffix string, version versions.Version) {
	for _, name := range version.PartNames() {
		v.entries = append(v.entries, entry{alias: prefix + name + suffix, value: version.Parts[name].Bytes(), from: set})
	}
}

// setOfEach returns the variable of the set of each entry that comes from one.
func setOfEach(entries []entry) map[string]string {
	sets := map[string]string{}
	for _, e := range entries {
		if e.from != "" {
			sets[e.alias] = e.from
		}
	}
	return sets
}

// twice returns an error if an entry from a set has the same name as another entry.
func (v *values) twice(entries []targets.Entry) error {
	if !slices.ContainsFunc(entries, targets.Entry.IsSet) {
		return nil
	}
	names := make([]string, len(v.entries))
	for i, e := range v.entries {
		names[i] = e.alias
	}
	if twice := repeated(names); len(twice) > 0 {
		return fmt.Errorf("%q is made by two entries; give a set a separate prefix, as in \"db-*\"", twice)
	}
	return nil
}

// templateVersion is a version of a set as templates see it.
type templateVersion struct {
	ID      string
	Primary bool
	parts   map[string]string // nil makes every part the placeholder
}

// versionsOf returns the valid versions, newest first.
func versionsOf(doc *versions.Document) []templateVersion {
	var all []templateVersion
	for _, v := range doc.Usable() {
		parts := make(map[string]string, len(v.Parts))
		for name, part := range v.Parts {
			parts[name] = string(part.Bytes())
		}
		all = append(all, templateVersion{v.ID, v.State == versions.Primary, parts})
	}
	return all
}

// Part returns the part with the name.
func (v templateVersion) Part(name string) (string, error) {
	if v.parts == nil {
		return placeholder, nil
	}
	part, ok := v.parts[name]
	if !ok {
		return "", &functionError{name: "Part", why: "the version has no such part"}
	}
	return part, nil
}

// versions returns the versions of the set with the alias. The error must not name
// the alias, because a template may compute it from a value.
func (r *run) versions(alias string) []templateVersion {
	if set, ok := r.sets[alias]; ok {
		return set
	}
	panic(unknownAlias("the group has no set of that alias"))
}
