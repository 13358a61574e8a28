//go:build long

package logintest

import (
	"net/http"
	"strings"
	"testing"
)

func TestRabbitMQ(t *testing.T) {
	s := StartRabbitMQ(t)
	s.User(t, "kept", "x", "")
	s.Crash()
	s.Restart(t)
	if got := s.Call(t, http.MethodGet, "/users", ""); !strings.Contains(got, `"kept"`) {
		t.Errorf("after a crash the users are %s", got)
	}
}
