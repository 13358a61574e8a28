package versions

import (
	"slices"
	"testing"
	"time"

	"github.com/secretsync/syncer/pkg/secret"
)

func partsOf(of map[string]string) map[string]secret.Value {
	made := map[string]secret.Value{}
	for name, text := range of {
		made[name] = secret.New([]byte(text))
	}
	return made
}

// TestFillRemovesAPart that is empty, such as an intent that is carried out.
func TestFillRemovesAPart(t *testing.T) {
	by := Entry{At: time.Unix(0, 0)}
	doc := New("us").Make("a", partsOf(map[string]string{"intent": "i"}), true, by)
	filled := doc.Fill("a", partsOf(map[string]string{"key": "k", "intent": ""}), by)
	if v, _ := filled.Version("a"); !slices.Equal(v.PartNames(), []string{"key"}) || !v.Filled {
		t.Errorf("the parts are %q", v.PartNames())
	}
	if v, _ := doc.Version("a"); !slices.Equal(v.PartNames(), []string{"intent"}) {
		t.Errorf("the document before has %q", v.PartNames())
	}
}

// TestAViewLeavesOutAPendingVersion that has none of its parts yet. A view of the others
// can be published meanwhile.
func TestAViewLeavesOutAPendingVersion(t *testing.T) {
	by := Entry{At: time.Unix(0, 0)}
	doc := New("us").Make("a", partsOf(map[string]string{"key": "k"}), true, by)
	doc = doc.Promote("a", by).Make("b", partsOf(map[string]string{"intent": "i"}), true, by)
	value, err := doc.With([]string{"key"}).Encode()
	if err != nil {
		t.Fatal(err)
	}
	view, err := Parse(value)
	if err != nil || len(view.Versions) != 1 || len(doc.Versions) != 2 {
		t.Errorf("the view has %d versions: %v", len(view.Versions), err)
	}
}
