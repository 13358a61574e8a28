package kubesecrets

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/secretsync/syncer/internal/brief"
	"github.com/secretsync/syncer/pkg/sinks"
	"github.com/secretsync/syncer/pkg/targets"
)

// secretEdit is one change of one Secret, relative to its current state.
type secretEdit struct {
	owned   fieldTree         // fields that we own before
	keys    map[string][]byte // data keys that we own afterwards
	data    map[string][]byte // all data afterwards
	removed []string          // keys that must be absent afterwards
	shared  []string          // keys in removed that others own too
	changed bool              // the data differs
	members []string          // members to record; nil keeps the recorded ones
	sets    *string           // annotation of sets, "" for none; nil keeps it
	first   bool              // the Secret never held anything of ours
	known   bool              // the Secret was not read; see known
}

// newSecret returns the Secret to create for a target. It has no UID.
func newSecret(s *targets.Secret) *corev1.Secret {
	kind := corev1.SecretType(s.Type)
	if kind == "" {
		kind = corev1.SecretTypeOpaque
	}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name, Labels: map[string]string{managedByLabel: targets.FieldManager}},
		Type:       kind,
	}
}

// edit computes the change, and refuses an impossible one.
func (k *Sink) edit(live *corev1.Secret, t *targets.Target, c sinks.Changes) (*secretEdit, error) {
	owned, err := ownedFields(live.ManagedFields)
	if err != nil {
		return nil, err
	}
	e := &secretEdit{owned: owned, keys: map[string][]byte{}}
	if !slices.Equal(c.Members, membersOf(live, owned)) {
		e.members = c.Members
	}
	if text := encodeSets(c.Sets); c.Sets != nil && text != live.Annotations[targets.RotationAnnotation] {
		e.sets = &text
	}
	kept, remove := sets.New(c.Kept...), sets.New(c.Remove...)
	for key, value := range c.Parts {
		switch there, ok := live.Data[key]; {
		case !kept.Has(key):
			e.keys[key] = value.Bytes()
		case ok: // after a conflict, it may be newer than the value in Parts
			e.keys[key] = there
		}
	}
	ours := ourKeys(live, owned, NamedKeys(t))
	e.first = len(ours) == 0 && live.Annotations[targets.RevisionAnnotation] == ""
	for _, key := range slices.Sorted(maps.Keys(ours)) {
		if _, wanted := c.Parts[key]; wanted {
			continue
		}
		if remove.Has(key) {
			e.removed = append(e.removed, key)
		} else {
			e.keys[key] = live.Data[key]
		}
	}
	if value, ok := live.Data[targets.ConjurMapKey]; ok && owned.has("data", targets.ConjurMapKey) {
		e.keys[targets.ConjurMapKey] = value // applied by another client
	}
	e.data = maps.Clone(live.Data)
	if e.data == nil {
		e.data = map[string][]byte{}
	}
	for _, key := range e.removed {
		delete(e.data, key)
	}
	maps.Copy(e.data, e.keys)
	e.blankOut(live.Type)
	e.changed = !maps.EqualFunc(e.data, live.Data, bytes.Equal)
	if e.shared, err = notOursAlone(live.ManagedFields, e.removed); err != nil {
		return nil, err
	}
	if faults := e.faults(live, t, c); len(faults) > 0 {
		return nil, &sinks.RefusedError{Target: t.Key, Reason: strings.Join(faults, "; ")}
	}
	return e, nil
}

// blankOut keeps a key that should be removed but that the type requires, with a
// blank value.
func (e *secretEdit) blankOut(kind corev1.SecretType) {
	rule := ruleOf(kind)
	isThere := func(key string) bool { _, ok := e.data[key]; return ok }
	if rule.oneIsEnough && slices.ContainsFunc(rule.required, isThere) {
		return
	}
	for _, key := range rule.required {
		if i := slices.Index(e.removed, key); i >= 0 {
			e.removed = slices.Delete(e.removed, i, i+1)
			e.keys[key], e.data[key] = []byte(rule.blank), []byte(rule.blank)
		}
	}
}

// kept returns an error if the answer to a write shows other data under our keys
// than was sent. Another write would be changed in the same way.
func (e *secretEdit) kept(t *targets.Target, after *corev1.Secret) error {
	var other []string
	for _, key := range slices.Sorted(maps.Keys(e.keys)) {
		if !bytes.Equal(after.Data[key], e.keys[key]) {
			other = append(other, key)
		}
	}
	if len(other) == 0 {
		return nil
	}
	return &sinks.RefusedError{Target: t.Key, Reason: fmt.Sprintf("an admission webhook changes the data key %s to something else than Syncer writes; exclude the Secret from the webhook, and then annotate the Secret", brief.List(other))}
}

// content returns our part of the Secret after the edit, as Read would return it.
func (e *secretEdit) content(kind corev1.SecretType) map[string][]byte {
	content, blank := maps.Clone(e.keys), blankKeys(kind, e.data)
	maps.DeleteFunc(content, func(key string, _ []byte) bool { return blank[key] || key == targets.ConjurMapKey })
	return content
}

// idle reports whether all content is as wanted, and we own it.
func (e *secretEdit) idle() bool {
	for key := range e.keys {
		if !e.owned.has("data", key) {
			return false
		}
	}
	return !e.changed && e.members == nil && e.sets == nil
}

// faults lists the reasons why the API server, or readers of the Secret, would
// reject the change.
func (e *secretEdit) faults(live *corev1.Secret, t *targets.Target, c sinks.Changes) []string {
	var faults []string
	add := func(fault string) {
		if fault != "" {
			faults = append(faults, fault)
		}
	}
	add(typeFault(live.Type))
	switch wanted := corev1.SecretType(t.Secret.Type); {
	case live.UID == "":
		add(createFault(live.Type))
	case t.Secret.Create && wanted != "" && wanted != live.Type:
		add(fmt.Sprintf("it is of type %s and should be of type %s, which only deleting it can change", live.Type, wanted))
	}
	if live.Immutable != nil && *live.Immutable && e.changed {
		add("it is immutable; delete it and create it without immutable: true")
	}
	for _, key := range slices.Sorted(maps.Keys(c.Parts)) {
		add(keyFault(key))
	}
	size := 0
	for _, value := range e.data {
		size += len(value)
	}
	if size > corev1.MaxSecretSize {
		add(fmt.Sprintf("its data would have %d bytes in sum, keys of others and %s included, and Kubernetes allows %d", size, targets.ConjurMapKey, corev1.MaxSecretSize))
	}
	add(e.membersFault(live))
	if e.decidesContent(live, c) {
		add(contentFault(live.Type, e.data))
	}
	return faults
}

// decidesContent reports whether the change causes a mismatch between the content
// and the Secret's type. It returns false if the change leaves the required keys
// alone, or if another client removed some of them.
func (e *secretEdit) decidesContent(live *corev1.Secret, c sinks.Changes) bool {
	blank := blankKeys(live.Type, e.data)
	decides := live.UID == ""
	for _, key := range ruleOf(live.Type).required {
		_, ours := e.keys[key]
		_, given := c.Parts[key]
		if blank[key] && ours && !given {
			return false
		}
		decides = decides || given
	}
	return decides
}

func keyFault(key string) string {
	switch problems := validation.IsConfigMapKey(key); {
	case key == targets.ConjurMapKey:
		return fmt.Sprintf("the key %q is that of the map itself; use another one", key)
	case len(problems) > 0:
		return fmt.Sprintf("the data key %q is not allowed: %s", key, strings.Join(problems, ", "))
	}
	return ""
}

// rivalsOf lists the field managers that own data keys that the edit changes or removes,
// in ascending order. A manager owns a key for good if it applied the key in stringData, so
// it counts only for keys that nobody owns in data. Nobody owns a key that another client
// removed. Its manager is then probably the one that wrote anything of the Secret last.
func rivalsOf(live *corev1.Secret, e *secretEdit) []string {
	var last, ours metav1.Time
	var lastBy string
	byField := map[string][]string{}
	for _, entry := range live.ManagedFields {
		if isOurs(entry) {
			if entry.Time != nil && ours.Before(entry.Time) {
				ours = *entry.Time
			}
			continue
		}
		fields, err := parseFields(entry)
		switch {
		case err != nil:
			continue
		case entry.Time != nil && !entry.Time.Before(&last):
			last, lastBy = *entry.Time, entry.Manager
		}
		for _, field := range []string{"data", "stringData"} {
			owns := func(key string) bool { _, there := live.Data[key]; return there && fields.has(field, key) }
			replaces := slices.ContainsFunc(e.removed, owns)
			for key, value := range e.keys {
				replaces = replaces || owns(key) && !bytes.Equal(live.Data[key], value)
			}
			if replaces {
				byField[field] = append(byField[field], entry.Manager)
			}
		}
	}
	rivals := byField["data"]
	if len(rivals) == 0 {
		rivals = byField["stringData"]
	}
	if len(rivals) == 0 && e.changed && lastBy != "" && !last.Before(&ours) {
		return []string{lastBy}
	}
	slices.Sort(rivals)
	return slices.Compact(rivals)
}
