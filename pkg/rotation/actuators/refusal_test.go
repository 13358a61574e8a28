package actuators

import (
	"encoding/base64"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestARefusalSaysWhy in the words of the service or program: bounded, in one line,
// and without a value that was sent.
func TestARefusalSaysWhy(t *testing.T) {
	v := stepVersion()
	said := "fence 20261122t000009 is later\nthan yours\x1b[2J (c4n4ry, " + base64.StdEncoding.EncodeToString([]byte("c4n4ry")) + ") " + strings.Repeat("x", 20_000)
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusConflict)
		_, _ = w.Write([]byte(said))
	}))
	defer service.Close()
	for name, send := range map[string]Send{
		"service": HTTP(service.URL, service.Client()),
		"program": Exec([]string{"SAID=" + said}, "/bin/sh", "-c", `printf %s "$SAID"; exit 77`),
	} {
		_, err := stepper(send).Apply(t.Context(), v)
		if !errors.Is(err, ErrRefused) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		text := err.Error()
		if !strings.Contains(text, "fence 20261122t000009 is later; than yours") || len(text) > longestReason+200 {
			t.Errorf("%s: %d bytes: %.300s", name, len(text), text)
		}
		if strings.Contains(text, "c4n4ry") || strings.Contains(text, "YzRuNHJ5") || strings.ContainsAny(text, "\x1b\n") {
			t.Errorf("%s: it has what it must not have: %.300q", name, text)
		}
	}
}
