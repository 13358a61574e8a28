package sinks

import (
	"encoding/json"
	"errors"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/secretsync/syncer/pkg/targets"
)

// fieldTree is a set of fields in the form of the FieldsV1 of an object's
// managedFields: a field is the key "f:" and its name, below that of the field
// that it is in; see metav1.FieldsV1.
type fieldTree map[string]fieldTree

// names lists the fields right below the path.
func (f fieldTree) names(path ...string) map[string]bool {
	for _, name := range path {
		f = f["f:"+name]
	}
	names := map[string]bool{}
	for key := range f {
		if len(key) > 2 && key[:2] == "f:" {
			names[key[2:]] = true
		}
	}
	return names
}

func (f fieldTree) has(path ...string) bool {
	last := len(path) - 1
	for _, name := range path[:last] {
		f = f["f:"+name]
	}
	_, ok := f["f:"+path[last]]
	return ok
}

// without drops fields of the data, and what is empty then, since an empty
// tree stands for the whole field.
func (f fieldTree) without(keys []string) {
	for _, key := range keys {
		delete(f["f:data"], "f:"+key)
	}
	if data, ok := f["f:data"]; ok && len(data) == 0 {
		delete(f, "f:data")
	}
}

func parseFields(e metav1.ManagedFieldsEntry) (fieldTree, error) {
	fields := fieldTree{}
	if e.FieldsV1 == nil {
		return fields, nil
	}
	if err := json.Unmarshal(e.FieldsV1.GetRawBytes(), &fields); err != nil {
		return nil, errors.New("its metadata.managedFields cannot be read")
	}
	return fields, nil
}

// isOurs reports whether an entry is of our own writes.
func isOurs(e metav1.ManagedFieldsEntry) bool {
	return e.Manager == targets.FieldManager && e.Subresource == ""
}

// isApplied reports whether an entry is of our own server-side applies. Leaving
// a field out of one removes it only if no other entry has it, so that our
// updates count as another manager's.
func isApplied(e metav1.ManagedFieldsEntry) bool {
	return isOurs(e) && e.Operation == metav1.ManagedFieldsOperationApply
}

// ownedFields returns the fields that our field manager owns, alone or with
// others.
func ownedFields(entries []metav1.ManagedFieldsEntry) (fieldTree, error) {
	owned := fieldTree{}
	for _, e := range entries {
		if !isOurs(e) {
			continue
		}
		fields, err := parseFields(e)
		if err != nil {
			return nil, err
		}
		owned.add(fields)
	}
	return owned, nil
}

// add makes f the union of both.
func (f fieldTree) add(other fieldTree) {
	for name, below := range other {
		if f[name] == nil {
			f[name] = fieldTree{}
		}
		f[name].add(below)
	}
}

// namedKeys lists the data keys that the target's definition names. What
// stands for all variables adds "*", which is no data key.
func namedKeys(t *targets.Target) map[string]bool {
	named := map[string]bool{}
	for _, e := range t.Entries {
		named[e.Alias] = true
	}
	for _, group := range t.Secret.Groups {
		named[group.Group] = true
	}
	return named
}

// ourKeys lists the keys that are there and ours.
func ourKeys(live *corev1.Secret, owned fieldTree, named map[string]bool) map[string]bool {
	ours := map[string]bool{}
	for key := range live.Data {
		if key != targets.ConjurMapKey && (named[key] || owned.has("data", key)) {
			ours[key] = true
		}
	}
	return ours
}

// notOursAlone lists those of the keys that another manager owns as well, or
// that we do not own: leaving them out of an apply would not remove them.
func notOursAlone(entries []metav1.ManagedFieldsEntry, keys []string) ([]string, error) {
	owners := map[string]int{}
	for _, e := range entries {
		fields, err := parseFields(e)
		if err != nil {
			return nil, err
		}
		for _, key := range keys {
			switch {
			case !fields.has("data", key):
			case isApplied(e):
				owners[key]++
			default:
				owners[key] += 2
			}
		}
	}
	var shared []string
	for _, key := range keys {
		if owners[key] != 1 {
			shared = append(shared, key)
		}
	}
	return shared, nil
}

// takeOver makes our field manager the only owner of the data keys.
func takeOver(entries []metav1.ManagedFieldsEntry, keys []string, now metav1.Time) ([]metav1.ManagedFieldsEntry, error) {
	ours := metav1.ManagedFieldsEntry{
		Manager: targets.FieldManager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: "v1", FieldsType: "FieldsV1", Time: &now,
	}
	fields := fieldTree{}
	var others []metav1.ManagedFieldsEntry
	for _, e := range entries {
		tree, err := parseFields(e)
		switch {
		case err != nil:
			return nil, err
		case isApplied(e):
			ours, fields = e, tree
			continue
		}
		if tree.without(keys); len(tree) > 0 {
			e.FieldsV1 = metav1.NewFieldsV1(tree.encode())
			others = append(others, e)
		}
	}
	if fields["f:data"] == nil {
		fields["f:data"] = fieldTree{}
	}
	for _, key := range keys {
		fields["f:data"]["f:"+key] = fieldTree{}
	}
	ours.FieldsV1 = metav1.NewFieldsV1(fields.encode())
	return append(others, ours), nil
}

func (f fieldTree) encode() string {
	raw, err := json.Marshal(f)
	if err != nil {
		panic(err) // maps of maps always encode
	}
	return string(raw)
}
