package config_test

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/secretsync/syncer/config"
)

// TestBounds of settings that no tag declares.
func TestBounds(t *testing.T) {
	rotation := func(set string) error {
		_, _, err := config.LoadRotation(fileSources(t, "rotation: {sets: [{set: a, "+set+"}]}", nil, connection).Read())
		return err
	}
	process := func(annotations, env dict) error {
		_, _, err := config.Load(sources(t, group.with(annotations), connection.with(env)).Read())
		return err
	}
	for what, c := range map[string]struct {
		bound int
		says  string // beyond it
		load  func(n int) error
	}{
		"an act outside, in ns": {int(10 * time.Minute), "too long; use at most 10m", func(n int) error {
			return rotation(fmt.Sprintf(`http: {url: "https://w/", key: k}, timeout: %dns`, n))
		}},
		"the interval of an Azure secret, in ns": {int(30 * 24 * time.Hour), "at least twice as long", func(n int) error {
			return rotation(fmt.Sprintf(`azure: {application: a, tenant: b, validity: 60d}, every: %dns`, n))
		}},
		"the number of a user": {1<<32 - 2, "neither a user's number nor a name", func(n int) error {
			return process(dict{"restart-app-signal": "SIGHUP", "restart-app-user": strconv.Itoa(n)}, nil)
		}},
		"a port": {1<<16 - 1, "not an address to listen on", func(n int) error {
			return process(nil, dict{"SERVER_ADDRESS": net.JoinHostPort("", strconv.Itoa(n))})
		}},
	} {
		for _, n := range []int{c.bound - 1, c.bound, c.bound + 1} {
			err := c.load(n)
			if good := n <= c.bound; good && err != nil || !good && (err == nil || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("%s, the bound%+d: %v", what, n-c.bound, err)
			}
		}
	}
}

// TestBoundsOfRetries: the interval is at most that of the poll, and at most a minute.
func TestBoundsOfRetries(t *testing.T) {
	for _, refresh := range []string{"30s", "59s", "60s", "61s"} {
		poll, err := time.ParseDuration(refresh)
		if err != nil {
			t.Fatal(err)
		}
		most := min(poll, time.Minute)
		for less := -time.Second; less <= time.Second; less += time.Second {
			seconds := strconv.Itoa(int((most + less).Seconds()))
			cfg, warnings := load(t, sources(t, group.with(dict{"secrets-refresh-interval": refresh, "retry-interval-sec": seconds}), connection))
			if cfg.Retry.Interval != min(most+less, most) || (len(warnings) > 0) != (less > 0) {
				t.Errorf("a poll each %s, retries each %s s: %v %v", refresh, seconds, cfg.Retry.Interval, warnings)
			}
		}
	}
}
