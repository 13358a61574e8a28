package cluster

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestRevokedValueLeavesExactlyItsKeys(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Variables("kept", "revoked")
	w.secret("db", map[string]string{"kept": "kept", "revoked": "revoked"}, func(s *corev1.Secret) {
		s.Data["theirs"] = []byte("theirs")
		s.Annotations["conjur.org/conjur-secrets.both"] = "- kept: kept\n- revoked: revoked\n"
		s.Annotations["conjur.org/secret-file-format.both"] = "json"
	})
	w.secret("other", map[string]string{"kept": "kept"})
	p := w.start()
	w.awaitData("db", map[string]string{"kept": w.Value["kept"], "revoked": w.Value["revoked"], "theirs": "theirs"})

	w.Deny("revoked")
	w.awaitData("db", map[string]string{"kept": w.Value["kept"], "revoked": "", "both": "", "theirs": "theirs"})
	kept := w.Renew("kept") // the rest of the Secret goes on
	w.awaitData("db", map[string]string{"kept": kept, "revoked": "", "both": ""})
	w.awaitData("other", map[string]string{"kept": kept})
	eventually(t, "an Event that names what was removed, and why", func() bool {
		told := strings.Join(w.events("db", "Removed"), "\n")
		return strings.Contains(told, "revoked") && strings.Contains(told, "both")
	})

	w.Permit("revoked")
	w.awaitData("db", map[string]string{"kept": kept, "revoked": w.Value["revoked"]})
	p.Stop()
}
