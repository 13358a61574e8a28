package cluster

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestForeignSecretsTakeNoMemory compares two processes: one that lives in a
// namespace with 100 MiB of other Secrets, and one that does not.
func TestForeignSecretsTakeNoMemory(t *testing.T) {
	const foreign, size, margin = 100, 1 << 20, 5 << 20
	run := func(crowded bool) int64 {
		w := newWorld(t)
		w.Variables("a")
		w.secret("db", map[string]string{"a": "a"})
		if crowded {
			for i := range foreign {
				s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("foreign-%d", i)}, Data: map[string][]byte{"x": bytes.Repeat([]byte{'x'}, size-100)}}
				if _, err := plane.Core.Secrets(w.namespace).Create(t.Context(), s, metav1.CreateOptions{}); err != nil {
					t.Fatal(err)
				}
			}
		}
		p := w.start()
		w.awaitData("db", map[string]string{"a": w.Value["a"]})
		w.Renew("a")
		w.awaitData("db", map[string]string{"a": w.Value["a"]})
		w.polls(3)
		peak := p.Memory("VmHWM")
		p.Stop()
		return peak
	}
	alone, crowded := run(false), run(true)
	if crowded > alone+margin {
		t.Errorf("peak of %d MiB among foreign Secrets, %d MiB alone", crowded>>20, alone>>20)
	}
}

// TestHalfSentRequestsTakeNoMemory opens connections without closing any, and looks
// whether probes pass meanwhile.
func TestHalfSentRequestsTakeNoMemory(t *testing.T) {
	const rounds, each, margin = 12, 800, 64 << 20
	w := newWorld(t)
	w.Variables("a")
	w.secret("db", map[string]string{"a": "a"})
	p := w.start()
	w.awaitData("db", map[string]string{"a": w.Value["a"]})
	before := p.Memory("VmHWM")
	var dialer net.Dialer
	for range rounds {
		for range each {
			c, err := dialer.DialContext(t.Context(), "tcp", w.address)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { c.Close() })
			_, _ = io.WriteString(c, "GET /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n") // else it is closed already
		}
		if code, _ := w.get("/healthz"); code != http.StatusOK {
			t.Errorf("/healthz: status %d", code)
		}
	}
	if peak := p.Memory("VmHWM"); peak > before+margin {
		t.Errorf("peak of %d MiB, %d MiB before", peak>>20, before>>20)
	}
}
