package cluster

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/secretsync/syncer/pkg/rotation/generate"
)

// certificate returns one that is valid for some days.
func certificate(t *testing.T, days int) string {
	t.Helper()
	parts, err := generate.Config{X509: &generate.X509{Subject: "shop", Days: days}}.Parts(time.Now(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return string(parts["crt"].Bytes())
}

// expiry returns in how many days a Secret expires by the metrics.
func (w *world) expiry(name string) (days float64, there bool) {
	w.Helper()
	_, metrics := w.get("/metrics")
	_, rest, there := strings.Cut(metrics, fmt.Sprintf(`syncer_secret_expiry_seconds{identity="default",target="secret/%s/%s"} `, w.namespace, name))
	seconds, _, _ := strings.Cut(rest, "\n")
	if days, _ = strconv.ParseFloat(seconds, 64); !there {
		return 0, false
	}
	return days / (24 * 60 * 60), true
}

func TestACertificateThatExpiresIsSaid(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Variables("user", "tls", "keystore")
	w.Server.Set("tls", certificate(t, 90)+certificate(t, 20))
	w.Server.Set("keystore", base64.StdEncoding.EncodeToString([]byte(certificate(t, 5))))
	w.secret("plain", map[string]string{"user": "user"})
	w.secret("db", map[string]string{"tls": "tls", "user": "user"}, func(s *corev1.Secret) {
		s.Annotations["conjur.org/conjur-secrets.bundle"] = "- store: keystore\n  content-type: base64\n"
		s.Annotations["conjur.org/secret-file-format.bundle"] = "json"
	})
	w.start()
	said := func(id string) func() bool {
		return func() bool {
			return strings.Contains(strings.Join(w.events("db", "Expiring"), "\n"), strconv.Quote(id))
		}
	}
	isIn := func(days float64) func() bool {
		return func() bool {
			is, there := w.expiry("db")
			return there && is > days-1 && is <= days
		}
	}
	eventually(t, "an Event about the one that expires first, in a group", said("keystore"))
	eventually(t, "the metric to say 5 days", isIn(5))
	w.Server.Set("keystore", base64.StdEncoding.EncodeToString([]byte(certificate(t, 300))))
	eventually(t, "an Event about the chain", said("tls"))
	eventually(t, "the metric to say 20 days", isIn(20))
	w.Server.Set("tls", certificate(t, 90))
	eventually(t, "the metric to say 90 days", isIn(90))
	if _, there := w.expiry("plain"); there {
		t.Error("a Secret without certificates expires")
	}
	w.Server.Set("tls", "none")
	w.Server.Set("keystore", "none")
	eventually(t, "nothing that expires", func() bool { _, there := w.expiry("db"); return !there })
}
