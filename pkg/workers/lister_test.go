package workers

import (
	"slices"
	"testing"

	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/conjur/conjurtest"
	"github.com/secretsync/syncer/pkg/conjur/variables"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/targets/records"
)

func newLister(t *testing.T) (*conjurtest.Double, *WildcardLister) {
	server := conjurtest.New()
	client, err := conjur.New(server.Start(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	values, err := variables.New(client, variables.Config{})
	if err != nil {
		t.Fatal(err)
	}
	set := &records.Lane{}
	set.Replace([]*targets.Target{{Key: "file/g", Entries: []targets.Entry{{Alias: "*", Variable: "*"}}}})
	server.Set("a", "value")
	return server, &WildcardLister{Catalog: values.NewCatalog(), Targets: set}
}

func TestListingTellsWhichTargetsDiffer(t *testing.T) {
	t.Parallel()
	server, l := newLister(t)
	for i, want := range [][]targets.Key{{"file/g"}, nil, {"file/g"}} {
		if i == 2 {
			server.Set("b", "value")
		}
		if got, err := l.Relist(t.Context()); err != nil || !slices.Equal(got, want) {
			t.Errorf("refresh %d: %v (%v), want %v", i, got, err, want)
		}
	}
}

// A worker may find that the poll has just read the list, and not told yet.
func TestListThatIsNoNewsIsUsedAllTheSame(t *testing.T) {
	t.Parallel()
	_, l := newLister(t)
	if _, err := l.Catalog.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := l.List(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := l.Targets.Variables(); !slices.Equal(got, []string{"a"}) {
		t.Errorf("the set has %q", got)
	}
}
