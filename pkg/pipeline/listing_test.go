package pipeline

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/pkg/conjur/variables"
	"github.com/secretsync/syncer/pkg/conjurd/conjurdtest"
	"github.com/secretsync/syncer/pkg/pipeline/connect"
	"github.com/secretsync/syncer/pkg/secret"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/targets/records"
)

func newListing(t *testing.T, server *conjurdtest.Server) *listing {
	client, err := connect.Conjur(config.Conjur{
		ApplianceURL: server.URL, AuthnURL: server.URL + "/authn", AuthnType: config.AuthnAPIKey, Account: conjurdtest.Account,
		Login: "host/app", APIKey: secret.New([]byte(server.HostKey("app"))),
		SSLCertificate: string(server.CA), HTTPTimeout: time.Minute,
	}, connect.Options{})
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
	return &listing{catalog: values.NewCatalog(), set: set}
}

// populate makes a variable with a value that the host may read.
func populate(server *conjurdtest.Server, id string) {
	defer server.Set(id, "value")
	server.Policy(fmt.Sprintf("- !variable %q\n- !permit { role: !host app, privileges: [read, execute], resource: !variable %q }\n", id, id))
}

func TestListingTellsWhichTargetsDiffer(t *testing.T) {
	t.Parallel()
	server := conjurdtest.Start(t)
	server.Policy("- !host app\n")
	populate(server, "a")
	l := newListing(t, server)
	for i, want := range [][]targets.Key{{"file/g"}, nil, {"file/g"}} {
		if i == 2 {
			populate(server, "b")
		}
		if got, err := l.refresh(t.Context()); err != nil || !slices.Equal(got, want) {
			t.Errorf("refresh %d: %v (%v), want %v", i, got, err, want)
		}
	}
}

// A worker may find that the poll has just read the list, and not told yet.
func TestListThatIsNoNewsIsUsedAllTheSame(t *testing.T) {
	t.Parallel()
	server := conjurdtest.Start(t)
	server.Policy("- !host app\n")
	populate(server, "a")
	l := newListing(t, server)
	if _, err := l.catalog.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := l.List(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := l.set.Variables(); !slices.Equal(got, []string{"a"}) {
		t.Errorf("the set has %q", got)
	}
}
