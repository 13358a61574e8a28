package variables_test

import (
	"testing"

	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/conjur/authn"
	"github.com/secretsync/syncer/pkg/conjur/conjurtest"
	"github.com/secretsync/syncer/pkg/conjurd/conjurdtest"
	"github.com/secretsync/syncer/pkg/secret"
)

// The client's share of an unchanged poll without its server is what the
// profile shows; the figures of the benchmark are of both.
func BenchmarkUnchangedPoll(b *testing.B) {
	for name, n := range map[string]int{"25": 25, "2000": 2000} {
		b.Run(name, func(b *testing.B) {
			s := conjurdtest.Start(b)
			ids := conjurtest.Names(n)
			policy := []byte("- !host web\n")
			for _, id := range ids {
				policy = append(policy, "- !variable "+id+"\n- !permit { role: !host web, privileges: [ read, execute ], resource: !variable "+id+" }\n"...)
			}
			s.Policy(string(policy))
			for _, id := range ids {
				s.Set(id, "value of "+id)
			}
			c := newClient(b, conjur.Config{
				ApplianceURL: s.URL, Account: s.Account, CA: string(s.CA), RateLimit: 1e6,
				Authenticator: authn.APIKey{Login: "host/web", Key: secret.New([]byte(s.HostKey("web")))},
			}, nil)
			defer c.Close()
			b.ReportAllocs()
			for b.Loop() {
				if changed, err := c.Changed(b.Context(), ids); err != nil || len(changed) != 0 {
					b.Fatal(changed, err)
				}
			}
		})
	}
}
