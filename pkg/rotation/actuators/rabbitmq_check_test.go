//go:build long

package actuators

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/secretsync/syncer/pkg/rotation/versions"
	"github.com/secretsync/syncer/pkg/secret"
	"github.com/secretsync/syncer/test/logintest"
	"github.com/secretsync/syncer/test/proctest"
)

func testRabbitCheck(t *testing.T, r *rabbit) {
	found := func(name string, wanted ...string) {
		t.Helper()
		problems := r.Check(t.Context(), r.doc)
		for i, err := range problems {
			if i >= len(wanted) || !strings.Contains(err.Error(), wanted[i]) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if len(problems) < len(wanted) {
			t.Errorf("%s: %q, instead of %q", name, problems, wanted)
		}
	}
	found("two new users")
	r.server.Call(t, http.MethodPut, onUser("/"+ofUser, r.Turns.Users[1]), `{"password_hash":"","tags":"management"}`)
	found("different tags", `has the tags ["management"]`)
	r.apply(t, 0, 1)
	found("a next user, which gets its tags later")
	r.server.User(t, r.Turns.Users[1], "manual", "")
	manual := versions.Version{Parts: map[string]secret.Value{username: secret.New([]byte(r.Turns.Users[1])), password: secret.New([]byte("manual"))}}
	r.server.Call(t, http.MethodPut, onUser("/"+openMost, r.Turns.Users[0]), shut)
	found("no connection", "may open no connection: rabbitmqctl clear_user_limits 'check a/%' max-connections")
	r.server.Call(t, http.MethodDelete, onUser("/"+openMost, r.Turns.Users[0]), "")
	conn := r.open(t, manual)
	proctest.Eventually(t, "a problem", func() bool { return len(r.Check(t.Context(), r.doc)) > 0 })
	found("a next user with a connection", "has no version: the connection")
	if _, err := r.Prepare(t.Context(), r.doc); err == nil || !strings.Contains(err.Error(), "has open sessions") {
		t.Errorf("prepare: %v", err)
	}
	good(t, conn.Close())
	r.gone(t, manual)
	r.server.Call(t, http.MethodDelete, onUser("/permissions/%2F/"+userHere, r.Turns.Users[0]), "")
	found("no permission", "may not use the virtual host /: rabbitmqctl set_permissions -p '/'")
	r.server.Call(t, http.MethodDelete, onUser("/"+ofUser, r.Turns.Users[1]), "")
	found("a missing user", "may not use", "there is no user check-b: rabbitmqctl add_user 'check-b'")
	was := *r.RabbitMQ
	r.API = r.server.PlainAPI
	found("an API without TLS", "https://")
	*r.RabbitMQ = was
	r.server.User(t, "weak", "admin", "monitoring")
	r.Admin = func(context.Context) (secret.Value, error) {
		return secret.New([]byte(`{"username":"weak","password":"admin"}`)), nil
	}
	found("an administrator without rights", "rabbitmqctl set_user_tags 'weak' monitoring administrator")
	r.Admin = func(context.Context) (secret.Value, error) {
		return secret.New([]byte(`{"username":"weak","password":"c4n4ry"}`)), nil
	}
	found("a wrong administrator", "it refuses the administrator")
}

// Another backend of the server may accept any password. Then a login proves nothing.
func TestRabbitMQAcceptsAWrongPassword(t *testing.T) {
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "allow") }))
	t.Cleanup(backend.Close)
	lines := []string{"auth_backends.1 = internal", "auth_backends.2 = http"}
	for _, path := range []string{"user", "vhost", "resource", "topic"} {
		lines = append(lines, "auth_http."+path+"_path = "+backend.URL+"/"+path)
	}
	r := rabbitOf(t, logintest.StartRabbitMQ(t, lines...))
	if problems := r.Check(t.Context(), r.doc); len(problems) != 1 || !strings.Contains(problems[0].Error(), "accepts a wrong password") {
		t.Errorf("check: %q", problems)
	}
}

// statistics are the lines for some seconds between two statistics of connections.
func statistics(seconds int) []string {
	const of = "management.sample_retention_policies."
	return []string{fmt.Sprint(of, "basic.minute = ", seconds), of + "global.minute = 5", of + "detailed.minute = 5", fmt.Sprint("collect_statistics_interval = ", seconds*1000)}
}

// Without fresh statistics, a connection that only one list has may still be open. It holds
// the refusal.
func TestRabbitMQWithoutStatistics(t *testing.T) {
	for name, test := range map[string]struct {
		lines               []string
		check, holds, lists string
	}{
		"late": {statistics(60), "", "lower management.sample_retention_policies.basic", "[]"},
		"none": {[]string{"management_agent.disable_metrics_collector = true"}, "management_agent.disable_metrics_collector", "the connection", "127.0.0.1"},
	} {
		t.Run(name, func(t *testing.T) {
			r := rabbitOf(t, logintest.StartRabbitMQ(t, test.lines...))
			if problems := fmt.Sprint(r.Check(t.Context(), r.doc)); !strings.Contains(problems, test.check) || test.check == "" && problems != "[]" {
				t.Errorf("check: %s", problems)
			}
			first := r.apply(t, 0, 1)
			r.apply(t, 1, 2)
			r.open(t, first)
			r.Timeout = 12 * time.Second // longer than three intervals of usual statistics
			if lists := r.server.Call(t, http.MethodGet, "/connections?columns=name", ""); !strings.Contains(lists, test.lists) {
				t.Errorf("the connections are %s", lists)
			}
			if err := r.Revoke(t.Context(), r.version(0, 1, versions.Revoking)); err == nil || errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), test.holds) {
				t.Errorf("revoke with a connection: %v", err)
			}
			good(t, r.Verify(t.Context(), first))
		})
	}
}
