package kubesecrets

import (
	"errors"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/secretsync/syncer/pkg/targets"
)

// fieldTree is a set of fields of an object.
type fieldTree struct{ *fieldpath.Set }

// names lists the fields directly below the path.
func (f fieldTree) names(path ...string) map[string]bool {
	below, names := f.Set, map[string]bool{}
	for _, name := range path {
		below = below.WithPrefix(fieldpath.FieldNameElement(name))
	}
	for field := range below.Members.All() {
		if field.FieldName != nil {
			names[*field.FieldName] = true
		}
	}
	return names
}

func (f fieldTree) has(path ...string) bool {
	var fields fieldpath.Path
	for _, name := range path {
		fields = append(fields, fieldpath.FieldNameElement(name))
	}
	return f.Has(fields)
}

func dataFields(keys []string) *fieldpath.Set {
	fields := fieldpath.NewSet()
	for _, key := range keys {
		fields.Insert(fieldpath.MakePathOrDie("data", key))
	}
	return fields
}

func parseFields(e metav1.ManagedFieldsEntry) (fieldTree, error) {
	fields := fieldTree{fieldpath.NewSet()}
	if e.FieldsV1 == nil {
		return fields, nil
	}
	if err := fields.FromJSON(e.FieldsV1.GetRawReader()); err != nil {
		return fields, errors.New("its metadata.managedFields cannot be read")
	}
	return fields, nil
}

// managedByLabel is one of Kubernetes' recommended labels. It marks Secrets that we
// created.
const managedByLabel = "app.kubernetes.io/managed-by"

// isOurs reports whether an entry describes our writes.
func isOurs(e metav1.ManagedFieldsEntry) bool {
	return e.Manager == targets.FieldManager && e.Subresource == ""
}

// isApplied reports whether an entry describes our server-side applies. Omitting a
// field from an apply removes it only if no other entry owns it. In this respect
// our updates count as another manager's.
func isApplied(e metav1.ManagedFieldsEntry) bool {
	return isOurs(e) && e.Operation == metav1.ManagedFieldsOperationApply
}

// ownedFields returns the fields that our field manager owns, alone or with others.
func ownedFields(entries []metav1.ManagedFieldsEntry) (fieldTree, error) {
	owned := fieldpath.NewSet()
	for _, e := range entries {
		if !isOurs(e) {
			continue
		}
		fields, err := parseFields(e)
		if err != nil {
			return fields, err
		}
		owned = owned.Union(fields.Set)
	}
	return fieldTree{owned}, nil
}

// NamedKeys lists the data keys that the target's definition names. An entry for
// all variables adds "*", which is not a data key.
func NamedKeys(t *targets.Target) map[string]bool {
	named := map[string]bool{}
	for _, e := range t.Entries {
		named[e.Alias] = true
	}
	for _, group := range t.Secret.Groups {
		named[group.Group] = true
	}
	return named
}

// ourKeys lists the existing keys that our manager owns or that the definition names,
// whoever owns them.
func ourKeys(live *corev1.Secret, owned fieldTree, named map[string]bool) map[string]bool {
	ours := map[string]bool{}
	for key := range live.Data {
		if key != targets.ConjurMapKey && (named[key] || owned.has("data", key)) {
			ours[key] = true
		}
	}
	return ours
}

// notOursAlone lists the keys that another manager also owns, or that we do not
// own. Omitting them from an apply would not remove them. In owners, 1 means that only
// our apply owns a key.
func notOursAlone(entries []metav1.ManagedFieldsEntry, keys []string) ([]string, error) {
	if len(keys) == 0 {
		return nil, nil
	}
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
	fields, keySet := fieldpath.NewSet(), dataFields(keys)
	var others []metav1.ManagedFieldsEntry
	for _, e := range entries {
		tree, err := parseFields(e)
		switch {
		case err != nil:
			return nil, err
		case isApplied(e):
			ours, fields = e, tree.Set
			continue
		}
		if tree.Set = tree.Difference(keySet); !tree.Empty() {
			e.FieldsV1 = encode(tree.Set)
			others = append(others, e)
		}
	}
	ours.FieldsV1 = encode(fields.Union(keySet))
	return append(others, ours), nil
}

func encode(fields *fieldpath.Set) *metav1.FieldsV1 {
	raw, err := fields.ToJSON()
	if err != nil {
		panic(err) // a write to memory, where every set encodes
	}
	return metav1.NewFieldsV1(string(raw))
}
