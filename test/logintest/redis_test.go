//go:build long

package logintest

import (
	"strings"
	"testing"
)

func TestRedis(t *testing.T) {
	s := StartRedis(t)
	s.Run(t, "ACL", "SETUSER", "kept", "on")
	s.Run(t, "ACL", "SAVE")
	s.Run(t, "ACL", "SETUSER", "lost", "on")
	s.Crash()
	if answer, err := s.run("PING"); err == nil {
		t.Errorf("after its end it says %s", answer)
	}
	s.Restart(t)
	if got := s.Run(t, "ACL", "LIST"); !strings.Contains(got, "user kept") || strings.Contains(got, "user lost") {
		t.Errorf("after a crash the users are %s", got)
	}
}
