package kubesecrets

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func managed(manager string, operation metav1.ManagedFieldsOperationType, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{Manager: manager, Operation: operation, APIVersion: "v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields)}
}

// What we own is what our own writes own, by apply and by update: not another
// manager's apply.
func TestOwnedFields(t *testing.T) {
	entries := []metav1.ManagedFieldsEntry{
		managed("syncer", metav1.ManagedFieldsOperationUpdate, `{"f:data":{"f:updated":{}}}`),
		managed("other", metav1.ManagedFieldsOperationApply, `{"f:data":{"f:theirs":{}}}`),
		managed("syncer", metav1.ManagedFieldsOperationApply, `{"f:data":{"f:a":{}},"f:metadata":{"f:labels":{".":{},"f:x/y":{}}},"f:type":{}}`),
	}
	owned, err := ownedFields(entries)
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]bool{"a": true, "updated": true, "theirs": false} {
		if owned.has("data", key) != want {
			t.Errorf("%s is ours: %t", key, !want)
		}
	}
	if labels := owned.names("metadata", "labels"); len(labels) != 1 || !labels["x/y"] {
		t.Errorf("our labels are %v", labels)
	}
	if !owned.has("type") || owned.has("metadata", "annotations") || len(owned.names("metadata", "annotations")) != 0 {
		t.Error("our type and annotations are wrong")
	}
}

func TestUnreadableFields(t *testing.T) {
	bad := []metav1.ManagedFieldsEntry{managed("syncer", metav1.ManagedFieldsOperationApply, `{"f:data":"canary"}`)}
	_, owned := ownedFields(bad)
	_, shared := notOursAlone(bad, []string{"a"})
	_, taken := takeOver(bad, []string{"a"}, metav1.Now())
	for _, err := range []error{owned, shared, taken} {
		if err == nil || strings.Contains(err.Error(), "canary") {
			t.Errorf("the error is %v", err)
		}
	}
}

// A key is taken out of every other entry; one that is empty then goes, for an
// empty field stands for all that is in it.
func TestTakeOverOfFields(t *testing.T) {
	entries, err := takeOver([]metav1.ManagedFieldsEntry{
		managed("one", metav1.ManagedFieldsOperationUpdate, `{"f:data":{"f:a":{}}}`),
		managed("two", metav1.ManagedFieldsOperationApply, `{"f:data":{"f:a":{}},"f:type":{}}`),
		managed("syncer", metav1.ManagedFieldsOperationUpdate, `{"f:data":{".":{},"f:a":{},"f:b":{}}}`),
		managed("syncer", metav1.ManagedFieldsOperationApply, `{"f:data":{"f:c":{}},"f:type":{}}`),
		{Manager: "none", Operation: metav1.ManagedFieldsOperationUpdate},
	}, []string{"a", "d"}, metav1.Now())
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`two Apply {"f:type":{}}`,
		`syncer Update {"f:data":{".":{},"f:b":{}}}`,
		`syncer Apply {"f:data":{"f:a":{},"f:c":{},"f:d":{}},"f:type":{}}`,
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Manager+" "+string(e.Operation)+" "+string(e.FieldsV1.GetRawBytes()))
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("the entries are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// A rival is the manager that owns a contested key, or the last writer if another client
// removed the key.
func TestRivalsOf(t *testing.T) {
	at := func(e metav1.ManagedFieldsEntry, second int64) metav1.ManagedFieldsEntry {
		e.Time = &metav1.Time{Time: time.Unix(second, 0)}
		return e
	}
	ours := at(managed("syncer", metav1.ManagedFieldsOperationApply, `{"f:data":{"f:b":{}}}`), 10)
	creator := at(managed("kubectl", metav1.ManagedFieldsOperationUpdate, `{"f:data":{"f:conjur-map":{}}}`), 1)
	other := func(fields string, second int64) metav1.ManagedFieldsEntry {
		return at(managed("rival", metav1.ManagedFieldsOperationUpdate, fields), second)
	}
	writes := &secretEdit{keys: map[string][]byte{"a": []byte("x"), "b": []byte("y")}, changed: true}
	applied := func(fields string) metav1.ManagedFieldsEntry {
		return at(managed("applier", metav1.ManagedFieldsOperationApply, fields), 5)
	}
	for name, c := range map[string]struct {
		entries []metav1.ManagedFieldsEntry
		edit    *secretEdit
		want    string
	}{
		"overwrites":                   {[]metav1.ManagedFieldsEntry{creator, ours, other(`{"f:data":{"f:a":{}}}`, 5)}, writes, "rival"},
		"adds a removed key":           {[]metav1.ManagedFieldsEntry{creator, ours, other(`{"f:data":{"f:c":{}}}`, 5)}, &secretEdit{removed: []string{"c"}, changed: true}, "rival"},
		"applies stringData":           {[]metav1.ManagedFieldsEntry{creator, ours, applied(`{"f:stringData":{"f:a":{}}}`)}, writes, "applier"},
		"overwrites what was applied":  {[]metav1.ManagedFieldsEntry{ours, applied(`{"f:stringData":{"f:a":{}}}`), other(`{"f:data":{"f:a":{}}}`, 5)}, writes, "rival"},
		"applies another key":          {[]metav1.ManagedFieldsEntry{creator, ours, applied(`{"f:stringData":{"f:b":{}}}`)}, writes, ""},
		"removes what was applied":     {[]metav1.ManagedFieldsEntry{ours, applied(`{"f:stringData":{"f:d":{}}}`), other(`{"f:metadata":{}}`, 10)}, &secretEdit{keys: map[string][]byte{"d": []byte("x")}, changed: true}, "rival"},
		"removes, and wrote last":      {[]metav1.ManagedFieldsEntry{creator, ours, other(`{"f:metadata":{}}`, 10)}, writes, "rival"},
		"removes, and wrote long ago":  {[]metav1.ManagedFieldsEntry{creator, ours, other(`{"f:metadata":{}}`, 5)}, writes, ""},
		"removes, and owns nothing":    {[]metav1.ManagedFieldsEntry{creator, ours}, writes, ""},
		"nothing of the data differed": {[]metav1.ManagedFieldsEntry{ours, other(`{"f:metadata":{}}`, 11)}, &secretEdit{}, ""},
	} {
		live := &corev1.Secret{Data: map[string][]byte{"a": []byte("theirs"), "b": []byte("y"), "c": []byte("z")}}
		live.ManagedFields = c.entries
		if got := strings.Join(rivalsOf(live, c.edit), " "); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
