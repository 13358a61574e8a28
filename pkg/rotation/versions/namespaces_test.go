package versions

import (
	"fmt"
	"slices"
	"testing"

	"github.com/secretsync/syncer/pkg/secret"
)

func TestASetNotesWhereItIsShown(t *testing.T) {
	d := New("us")
	if d.Shows("shop") {
		t.Error("a set without versions is shown")
	}
	d = d.Make("r1", map[string]secret.Value{"key": secret.New([]byte("key"))}, true, Entry{At: epoch})
	if !d.Shows("shop") || d.Noted(nil) {
		t.Error("a set of which nobody noted it is not taken to be shown anywhere")
	}
	for _, namespaces := range [][]string{{}, {"shop"}} {
		value, err := d.NoteAlone(namespaces, Entry{At: epoch}).Encode()
		if err != nil {
			t.Fatal(err)
		}
		read, err := Parse(value)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(read.Namespaces, namespaces) || !read.Noted(namespaces) || read.Noted([]string{"other"}) || read.Shows("other") || read.Step != d.Step+1 {
			t.Errorf("of %q the set notes %q", namespaces, read.Namespaces)
		}
	}
	var many []string
	for i := range maxNamespaces + 1 {
		many = append(many, fmt.Sprintf("team-%03d", i))
	}
	if d := d.Note(many); !d.Shows("any") || !d.Noted(many) || len(d.Namespaces) != 1 {
		t.Errorf("of many namespaces it notes %q", d.Namespaces)
	}
	if d.Note(many).With([]string{"public"}).Namespaces != nil {
		t.Error("a view of the set names the namespaces")
	}
}
