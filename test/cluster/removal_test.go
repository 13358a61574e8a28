package cluster

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// revoke takes away the right to read a variable.
func (w *world) revoke(id string) {
	w.t.Helper()
	w.server.Policy(fmt.Sprintf("- !deny {role: !host app, privileges: [read, execute], resource: !variable %q}\n", id))
}

// permit gives it back.
func (w *world) permit(id string) {
	w.t.Helper()
	w.server.Policy(fmt.Sprintf("- !permit {role: !host app, privileges: [read, execute], resource: !variable %q}\n", id))
}

func TestRevokedValueLeavesExactlyItsKeys(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.variables("kept", "revoked")
	w.secret("db", map[string]string{"kept": "kept", "revoked": "revoked"}, func(s *corev1.Secret) {
		s.Data["theirs"] = []byte("theirs")
		s.Annotations["conjur.org/conjur-secrets.both"] = "- kept: kept\n- revoked: revoked\n"
		s.Annotations["conjur.org/secret-file-format.both"] = "json"
	})
	w.secret("other", map[string]string{"kept": "kept"})
	p := w.start()
	w.awaitData("db", map[string]string{"kept": w.value["kept"], "revoked": w.value["revoked"], "theirs": "theirs"})

	w.revoke("revoked")
	w.awaitData("db", map[string]string{"kept": w.value["kept"], "revoked": "", "both": "", "theirs": "theirs"})
	kept := w.renew("kept") // the rest of the Secret goes on
	w.awaitData("db", map[string]string{"kept": kept, "revoked": "", "both": ""})
	w.awaitData("other", map[string]string{"kept": kept})
	eventually(t, "an Event that names what was removed, and why", func() bool {
		told := strings.Join(w.events("db", "Removed"), "\n")
		return strings.Contains(told, "revoked") && strings.Contains(told, "both")
	})

	w.permit("revoked")
	w.awaitData("db", map[string]string{"kept": kept, "revoked": w.value["revoked"]})
	p.Stop()
}
