package main

import (
	"strings"
	"testing"

	"github.com/secretsync/syncer/pkg/rotation/versions"
)

// TestWhoSteersNeedsNoRightToTheKeys also to pass a gate: whoever rotates the set answers.
func TestWhoSteersNeedsNoRightToTheKeys(t *testing.T) {
	t.Parallel()
	r := newRotates(t, "  sets: [{set: jwt, generate: {random: 32}, keep: 1h, confirm: {ask: 'http://127.0.0.1:1/keys'}}]\n")
	r.Policy(`
- !host steers
- !host reads
- !grant { role: !group rotation-steers, members: [!host steers, !host reads] }
- !permit { role: !host reads, privileges: [read], resource: !variable jwt }
`)
	by := func(host string, status int, says string, args ...string) {
		t.Helper()
		p := spawn(t, []string{
			"CONJUR_APPLIANCE_URL=" + r.URL, "CONJUR_ACCOUNT=" + r.Account, "CONJUR_SSL_CERTIFICATE=" + string(r.CA),
			"CONJUR_AUTHN_LOGIN=host/" + host, "CONJUR_AUTHN_API_KEY=" + r.HostKey(host),
		}, append([]string{"rotate"}, args...)...)
		p.Exit(status)
		if !strings.Contains(p.Log(), says) {
			t.Errorf("%s %q: nothing says %q: %s", host, args, says, p.Log())
		}
	}
	r.run("run", "--config", r.config)
	first := r.begun()
	by("rotates", 1, "no version of jwt waits to be promoted", "promote", "jwt", "--force", "--reason", "leak")
	by("steers", 1, "no version waits to be promoted", "promote", "jwt", "--force", "--reason", "leak")
	for i, host := range []string{"steers", "reads"} {
		before := r.until("a primary", func(_ *versions.Document, primary versions.Version) bool { return primary.ID != "" })
		by(host, 0, "obeyed", "now", "jwt")
		by(host, 1, "--force needs a --reason", "promote", "jwt", "--force")
		by(host, 0, "obeyed: promoted", "promote", "jwt", "--force", "--reason", "leak")
		r.another(before)
		if i == 0 {
			by(host, 0, "obeyed: retires "+first.ID, "retire", "jwt", first.ID, "--force", "--reason", "leak")
		}
	}
}
