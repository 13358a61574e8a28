package variables_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/conjur/authn"
	"github.com/secretsync/syncer/pkg/conjur/conjurtest"
	"github.com/secretsync/syncer/pkg/conjur/variables"
	"github.com/secretsync/syncer/pkg/conjurd/conjurdtest"
	"github.com/secretsync/syncer/pkg/secret"
)

// The whole life of a variable against the embedded server: as the genuine
// one, and with what it adds.
func TestAgainstConjurd(t *testing.T) {
	for name, options := range map[string][]conjurdtest.Option{"strict": {conjurdtest.Strict()}, "extended": nil} {
		t.Run(name, func(t *testing.T) {
			s := conjurdtest.Start(t, options...)
			ids := []string{"app/a", "app/b", "app/com,ma", "app/sp ace+", "app/ünï"}
			var policy strings.Builder
			policy.WriteString("- !host web\n")
			for _, id := range ids {
				fmt.Fprintf(&policy, "- !variable %q\n- !permit { role: !host web, privileges: [ read, execute ], resource: !variable %q }\n", id, id)
			}
			s.Policy(policy.String())
			for _, id := range ids {
				s.Set(id, "value of "+id)
			}
			c := newClient(t, conjur.Config{
				ApplianceURL: s.URL, Account: s.Account, CA: string(s.CA),
				Authenticator: authn.APIKey{Login: "host/web", Key: secret.New([]byte(s.HostKey("web")))},
			}, nil)
			defer c.Close()
			wantAll := func(except string) {
				t.Helper()
				for id, a := range c.Fetch(t.Context(), ids) {
					if id != except {
						wantFound(t, a, "value of "+id)
					}
				}
			}
			wantAll("")
			poll(t, c, ids)
			s.ResetCounts()
			poll(t, c, ids)
			if n := s.Counts(); n.Data != 2 || n.NotModified != 2 || n.DataBytes != 0 || n.Connections != 0 || n.Authentications != 0 {
				t.Errorf("an unchanged poll: %+v", n)
			}
			s.Set("app/b", "\x00\xff")
			poll(t, c, ids, "app/b")
			wantFound(t, fetch(t, c, "app/b"), "\x00\xff")
			s.Set("app/b", "value of app/b")
			poll(t, c, ids, "app/b")

			s.Policy(`- !deny { role: !host web, privileges: [ execute ], resource: !variable "app/sp ace+" }`)
			poll(t, c, ids)
			poll(t, c, ids, "app/sp ace+")
			wantGone(t, fetch(t, c, "app/sp ace+"), variables.Forbidden)
			wantAll("app/sp ace+")
			s.Policy(`- !permit { role: !host web, privileges: [ execute ], resource: !variable "app/sp ace+" }`)
			poll(t, c, ids, "app/sp ace+")
			wantAll("")

			s.Policy("- !delete { record: !variable app/a }\n")
			poll(t, c, ids)
			poll(t, c, ids, "app/a")
			wantGone(t, fetch(t, c, "app/a"), variables.Missing)
			wantAll("app/a")
		})
	}
}

// A refused batch costs one request more, however many variables are at fault,
// when the server names them all.
func TestARefusedBatchThatNamesAllCostsOneRequest(t *testing.T) {
	s := conjurdtest.Start(t)
	ids := conjurtest.Names(100)
	var policy strings.Builder
	policy.WriteString("- !host web\n")
	var missing []string
	for i, id := range ids {
		if i%5 == 0 {
			missing = append(missing, id) // twenty of them do not exist
			continue
		}
		fmt.Fprintf(&policy, "- !variable %s\n- !permit { role: !host web, privileges: [ read, execute ], resource: !variable %s }\n", id, id)
	}
	s.Policy(policy.String())
	for i, id := range ids {
		if i%5 != 0 {
			s.Set(id, "value of "+id)
		}
	}
	c := newClient(t, conjur.Config{
		ApplianceURL: s.URL, Account: s.Account, CA: string(s.CA),
		Authenticator: authn.APIKey{Login: "host/web", Key: secret.New([]byte(s.HostKey("web")))},
	}, nil)
	defer c.Close()

	poll(t, c, ids)
	// The refused batch, the batch of the others, and one for each of those
	// that are missing.
	if n := s.Counts(); n.Data != 22 || n.DataErrors != 21 {
		t.Errorf("a poll of 100 variables with 20 missing cost %d requests, %d of them refused; want 22 and 21", n.Data, n.DataErrors)
	}
	poll(t, c, ids, missing...)
	s.ResetCounts()
	poll(t, c, ids)
	// The batch of the others, and eight of those that are gone.
	if n := s.Counts(); n.Data != 9 || n.NotModified != 1 {
		t.Errorf("once it is known, a poll costs %d requests, %d of them answered 304; want 9 and 1", n.Data, n.NotModified)
	}
}
