package definitions

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/secretsync/syncer/internal/joined"
	"github.com/secretsync/syncer/pkg/targets"
)

// SecretDefinition contains every definition of a Kubernetes Secret's content.
type SecretDefinition struct {
	Namespace, Name string
	// UID is the Secret's UID, or "" if it is irrelevant.
	UID string
	// Annotations are the Secret's own annotations. Map is the text under ConjurMapKey of
	// its data, if HasMap is true.
	Annotations map[string]string
	Map         string
	HasMap      bool
	// Oversize is the size of these fields in bytes, if they are omitted because they
	// exceed targets.MaxDefinition.
	Oversize int
	// OverBudget means that they are omitted because the namespace has no room for them.
	OverBudget bool
	Type       string // of the Secret itself
	// Missing means that the Secret does not exist, and the fields above are empty.
	Missing bool
	// Unread says why the existence of the Secret is unknown, or is "".
	Unread string
	// Account is the account in use, as for ParseEntries.
	Account string
	// Configured contains the configuration's settings for the Secret: Entries, and in
	// Secret the Groups, Create, Type, Restart and PullFor. If they are invalid, it
	// contains Faults. It is nil without settings.
	Configured *targets.Target
	// Named means that the configuration names the Secret. Then a missing definition of
	// its content is a fault. A Secret that is found by its label may receive its map
	// later.
	Named bool
}

// FromSecret makes the target of a Kubernetes Secret. Faults contains the faulty parts of
// the definition. They do not prevent the delivery of other parts. Hold contains the data
// keys that they name. Warnings contains what the definition says in vain.
//
// The configuration and the Secret itself may each define data keys. If both define the
// same key, the configuration takes precedence.
func FromSecret(def SecretDefinition) *targets.Target {
	if size := def.Size(); size > targets.MaxDefinition {
		return refused(def, fmt.Sprintf("the map and the annotations that define the Secret have %d bytes, and may have %d; divide them among several Secrets",
			size, targets.MaxDefinition))
	}
	content := parseSecret(def.Namespace, def.Annotations, def.Map, def.HasMap, def.Account)
	warnings := append(content.warnings, unknownAnnotations(def.Annotations)...)
	restart, errRestart := ParseWorkloads(def.Annotations[restartWorkloads])
	pullFor, errPull := ParseAccounts(def.Annotations[pullSecretFor])
	s := &targets.Secret{
		Namespace: def.Namespace, Name: def.Name, UID: def.UID, Missing: def.Missing, Unread: def.Unread, Restart: restart, PullFor: pullFor,
		Faults: slices.Concat(content.faults, faultsAt(restartWorkloads, errRestart), faultsAt(pullSecretFor, errPull)),
	}
	var faults []string
	if def.Configured != nil {
		warnings = append(warnings, content.preferConfigured(def.Configured)...)
		faults = def.Configured.Faults
		if c := def.Configured.Secret; c != nil {
			s.Create, s.Type = c.Create, c.Type
			s.Faults = slices.Concat(c.Faults, s.Faults)
			s.Restart = unique(slices.Concat(c.Restart, s.Restart))
			s.PullFor = unique(slices.Concat(c.PullFor, s.PullFor))
		}
	}
	if fault := CheckPullType(def.Type); fault != nil && len(s.PullFor) > 0 && def.UID != "" {
		s.PullFor, s.Faults = nil, append(s.Faults, faultsAt(pullSecretFor, fault)...)
	}
	s.Groups, s.Hold, s.HoldAll, s.Size = content.groups, content.hold, content.holdAll, def.Size()
	s.Faults = few(s.Faults)
	t := &targets.Target{Key: targets.KubeSecretKey(def.Namespace, def.Name), Entries: content.entries, Secret: s, Faults: faults}
	if n := t.CountEntries(); n > targets.MaxEntries {
		return refused(def, targets.TooManyEntries(n))
	}
	if fault, warning := undefined(s, def, len(t.Entries) > 0); fault != "" {
		s.Faults = append(s.Faults, targets.Fault{Place: targets.ConjurMapKey, Why: fault})
	} else if warning != "" {
		warnings = append(warnings, targets.Fault{Place: targets.ConjurMapKey, Why: warning})
	}
	s.Warnings = few(warnings)
	return t
}

// undefined returns the fault if there is no definition of the Secret's content. Then
// nothing is removed from the Secret either.
func undefined(s *targets.Secret, def SecretDefinition, entries bool) (fault, warning string) {
	const empty = "the map is empty, so nothing is delivered and nothing removed; add \"key: id\", or write {} to remove the delivered keys"
	const none = "there is neither a map nor a group; write a map of data keys to variables"
	if entries || len(s.Groups) > 0 || s.Missing || s.Unread != "" || len(s.Faults) > 0 {
		return "", ""
	}
	switch {
	case !def.HasMap:
		s.HoldAll = true
		warning = none
	case s.HoldAll: // it has no fault
		warning = empty
	}
	if def.Named {
		return cmp.Or(warning, "the map is empty; add \"key: id\""), ""
	}
	return "", warning
}

// preferConfigured gives the configuration's settings precedence.
func (p *secretParser) preferConfigured(configured *targets.Target) (warnings []targets.Fault) {
	taken := map[string]bool{}
	for _, e := range configured.Entries {
		taken[e.Alias] = true
	}
	groups := []*targets.Target{}
	if configured.Secret != nil {
		groups = configured.Secret.Groups
		for _, t := range groups {
			taken[t.Group] = true
		}
	}
	overridden := func(place, key string) bool {
		if taken[key] {
			warnings = append(warnings, targets.Fault{Place: place, Why: fmt.Sprintf("not used: the configuration already says what the data key %q holds", key)})
		}
		return taken[key]
	}
	own := slices.DeleteFunc(p.entries, func(e targets.Entry) bool { return overridden(targets.ConjurMapKey, e.Alias) })
	ownGroups := slices.DeleteFunc(p.groups, func(t *targets.Target) bool { return overridden(groupSecrets+t.Group, t.Group) })
	p.entries = slices.Concat(configured.Entries, own)
	p.groups = slices.Concat(groups, ownGroups)
	slices.SortFunc(p.groups, func(a, b *targets.Target) int { return cmp.Compare(a.Group, b.Group) })
	p.hold = slices.DeleteFunc(p.hold, func(key string) bool { return taken[key] })
	return warnings
}

// few truncates a list that is too long for a reader.
func few(faults []targets.Fault) []targets.Fault {
	const most = 100
	if more := len(faults) - most; more > 0 {
		faults = append(slices.Clone(faults[:most]), targets.Fault{Place: targets.ConjurMapKey, Why: fmt.Sprintf("and %d more", more)})
	}
	return faults
}

// faultsAt returns the errors that err joins as faults.
func faultsAt(place string, err error) (faults []targets.Fault) {
	for _, e := range joined.Errors(err) {
		faults = append(faults, targets.Fault{Place: place, Why: e.Error()})
	}
	return faults
}

// unique keeps the first of each text.
func unique(texts []string) (kept []string) {
	for _, text := range texts {
		if !slices.Contains(kept, text) {
			kept = append(kept, text)
		}
	}
	return kept
}

// Size returns the size of the Secret's own definition in bytes.
func (def SecretDefinition) Size() int {
	size := def.Oversize + len(def.Map)
	for key, value := range def.Annotations {
		if targets.Defines(key) {
			size += len(key) + len(value)
		}
	}
	return size
}

// refused makes the target of a Secret whose definition exceeds a limit.
func refused(def SecretDefinition, why string) *targets.Target {
	t := &targets.Target{Key: targets.KubeSecretKey(def.Namespace, def.Name), Secret: &targets.Secret{
		Namespace: def.Namespace, Name: def.Name, UID: def.UID, Missing: def.Missing, Unread: def.Unread,
	}}
	return t.Refused(why)
}
