package cluster

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestLabelledSecretIsKeptInSync(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Variables("db/user", "db/password")
	user, password := w.Renew("db/user"), w.Renew("db/password")
	p := w.start()
	w.secret("db", map[string]string{"user": "db/user", "password": "db/password"}, func(s *corev1.Secret) {
		s.Data["theirs"] = []byte("kept")
	})
	w.awaitData("db", map[string]string{"user": user, "password": password, "theirs": "kept"})

	password = w.Renew("db/password")
	w.awaitData("db", map[string]string{"user": user, "password": password, "theirs": "kept"})

	w.edit("db", func(s *corev1.Secret) { s.Data["conjur-map"] = []byte("login: db/user\n") })
	w.awaitData("db", map[string]string{"login": user, "user": "", "password": "", "theirs": "kept"})

	w.edit("db", func(s *corev1.Secret) { s.Data["login"] = []byte("tampered") })
	w.awaitData("db", map[string]string{"login": user})
	eventually(t, "an Event that tells of the keys", func() bool { return len(w.events("db", "Synced")) > 0 })
	p.Stop()
}
