package main

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/conjurd/conjurdtest"
	"github.com/secretsync/syncer/pkg/secret"
	"github.com/secretsync/syncer/pkg/targets"
)

func newListing(w *world) *listing {
	client, err := conjur.New(clientConfig(config.Conjur{
		ApplianceURL: w.url, AuthnURL: w.url + "/authn", AuthnType: config.AuthnAPIKey, Account: conjurdtest.Account,
		Login: "host/app", APIKey: secret.New([]byte(w.server.HostKey("app"))),
		SSLCertificate: string(w.server.CA), HTTPTimeout: time.Minute,
	}, zap.NewNop(), nil))
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(client.Close)
	set := &targets.Set{}
	set.Replace([]*targets.Target{{Key: "file/g", Entries: []targets.Entry{{Alias: "*", Variable: "*"}}}})
	return &listing{catalog: client.NewCatalog(), set: set}
}

func TestListingTellsWhichTargetsDiffer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.populate("a")
	l := newListing(w)
	for i, want := range [][]targets.Key{{"file/g"}, nil, {"file/g"}} {
		if i == 2 {
			w.populate("b")
		}
		if got, err := l.refresh(t.Context()); err != nil || !slices.Equal(got, want) {
			t.Errorf("refresh %d: %v (%v), want %v", i, got, err, want)
		}
	}
}

// A worker may find that the poll has just read the list, and not told yet.
func TestListThatIsNoNewsIsUsedAllTheSame(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.populate("a")
	l := newListing(w)
	if _, err := l.catalog.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := l.first(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := l.set.Variables(); !slices.Equal(got, []string{"a"}) {
		t.Errorf("the set has %q", got)
	}
}

// TestManyThatMayNotBeRead has a host that sees much more than it may read.
func TestManyThatMayNotBeRead(t *testing.T) {
	t.Parallel()
	for name, options := range map[string][]conjurdtest.Option{"own": nil, "genuine": {conjurdtest.Strict()}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, options...)
			w.oneShot("init", 5)
			ids := many(300)
			w.populate(ids...)
			var readable []string
			for i, id := range ids {
				if i%3 == 0 {
					w.privilege("!deny", id)
					w.server.Policy(fmt.Sprintf("- !permit { role: !host app, privileges: [read], resource: !variable %q }\n", id))
					continue
				}
				readable = append(readable, id)
			}
			w.all("g", "json")
			w.start().Exit(0)
			if !w.holds("g.json", readable) {
				t.Error("g.json does not hold just what may be read")
			}
		})
	}
}
