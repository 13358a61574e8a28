package config_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/secretsync/syncer/config"
)

func TestRefresh(t *testing.T) {
	for name, c := range map[string]struct {
		annotations dict
		want        config.Refresh
	}{
		"not set":             {nil, config.Refresh{}},
		"enabled":             {dict{"secrets-refresh-enabled": "true"}, config.Refresh{Enabled: true, Interval: 5 * time.Minute}},
		"enabled by 1":        {dict{"secrets-refresh-enabled": "1"}, config.Refresh{Enabled: true, Interval: 5 * time.Minute}},
		"enabled by True":     {dict{"secrets-refresh-enabled": "True"}, config.Refresh{Enabled: true, Interval: 5 * time.Minute}},
		"disabled":            {dict{"secrets-refresh-enabled": "false"}, config.Refresh{}},
		"disabled in init":    {dict{"secrets-refresh-enabled": "F", "container-mode": "init"}, config.Refresh{}},
		"interval":            {dict{"secrets-refresh-interval": "2h30m"}, config.Refresh{Enabled: true, Interval: 150 * time.Minute}},
		"shortest interval":   {dict{"secrets-refresh-interval": "1s"}, config.Refresh{Enabled: true, Interval: time.Second}},
		"milliseconds":        {dict{"secrets-refresh-interval": "1500ms"}, config.Refresh{Enabled: true, Interval: 1500 * time.Millisecond}},
		"enabled, interval":   {dict{"secrets-refresh-enabled": "true", "secrets-refresh-interval": "90s"}, config.Refresh{Enabled: true, Interval: 90 * time.Second}},
		"empty interval":      {dict{"secrets-refresh-interval": ""}, config.Refresh{}},
		"empty interval, on":  {dict{"secrets-refresh-interval": "", "secrets-refresh-enabled": "true"}, config.Refresh{Enabled: true, Interval: 5 * time.Minute}},
		"disabled in a Job":   {dict{"secrets-refresh-enabled": "false", "container-mode": "application"}, config.Refresh{}},
		"disabled by default": {dict{"container-mode": "application"}, config.Refresh{}},
	} {
		t.Run(name, func(t *testing.T) {
			annotations := group.with(c.annotations)
			for k, v := range c.annotations { // with removes what is empty
				annotations[k] = v
			}
			if cfg, _ := load(t, sources(t, annotations, connection)); cfg.Refresh != c.want {
				t.Errorf("got %v", cfg.Refresh)
			}
		})
	}
}

// TestRefresh_fromTheEnvironmentIsADefault: the chart sets the variable for each sidecar,
// and an annotation overrides it. Without it, a sidecar delivers once, as the Secrets
// Provider's, and a hint says so.
func TestRefresh_fromTheEnvironmentIsADefault(t *testing.T) {
	on := func(d time.Duration) config.Refresh { return config.Refresh{Enabled: true, Interval: d} }
	for name, c := range map[string]struct {
		annotations dict
		env         string
		want        config.Refresh
		hinted      bool
	}{
		"only the environment": {nil, "5m", on(5 * time.Minute), false},
		"another interval":     {dict{"secrets-refresh-interval": "30s"}, "5m", on(30 * time.Second), false},
		"switched off":         {dict{"secrets-refresh-enabled": "false"}, "5m", config.Refresh{}, false},
		"switched on":          {dict{"secrets-refresh-enabled": "true"}, "90s", on(90 * time.Second), false},
		"an init container":    {dict{"container-mode": "init"}, "5m", config.Refresh{}, false},
		"a Job, switched off":  {dict{"container-mode": "application", "secrets-refresh-enabled": "false"}, "5m", config.Refresh{}, false},
		"nothing":              {nil, "", config.Refresh{}, true},
		"off without it":       {dict{"secrets-refresh-enabled": "false"}, "", config.Refresh{}, false},
		"an init, nothing":     {dict{"container-mode": "init"}, "", config.Refresh{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, warnings := load(t, sources(t, group.with(c.annotations), connection.with(dict{"SECRETS_REFRESH_INTERVAL": c.env})))
			if cfg.Refresh != c.want || len(warnings) > 0 || (len(cfg.Hints()) > 0) != c.hinted {
				t.Errorf("got %v, warnings %v, hints %v", cfg.Refresh, warnings, cfg.Hints())
			}
		})
	}
	annotations := group.with(dict{"container-mode": "init", "secrets-refresh-enabled": "true"})
	got := problems(t, sources(t, annotations, connection.with(dict{"SECRETS_REFRESH_INTERVAL": "5m"})))
	assertOne(t, got, "conjur.org/secrets-refresh-enabled", "mode init")
}

func TestRefreshRefuses(t *testing.T) {
	const enabled, interval = "conjur.org/secrets-refresh-enabled", "conjur.org/secrets-refresh-interval"
	for name, c := range map[string]struct {
		annotations dict
		key, want   string
	}{
		"zero":                    {dict{"secrets-refresh-interval": "0s"}, interval, "at least 1s"},
		"negative":                {dict{"secrets-refresh-interval": "-5m"}, interval, "at least 1s"},
		"below a second":          {dict{"secrets-refresh-interval": "999ms"}, interval, "at least 1s"},
		"days":                    {dict{"secrets-refresh-interval": "1d"}, interval, "not a duration"},
		"no unit":                 {dict{"secrets-refresh-interval": "5"}, interval, "not a duration"},
		"space":                   {dict{"secrets-refresh-interval": " 5m"}, interval, "not a duration"},
		"overflow":                {dict{"secrets-refresh-interval": "9999999h"}, interval, "not a duration"},
		"not a Boolean":           {dict{"secrets-refresh-enabled": "yes"}, enabled, "not a Boolean"},
		"odd case":                {dict{"secrets-refresh-enabled": "tRuE"}, enabled, "not a Boolean"},
		"disabled with interval":  {dict{"secrets-refresh-enabled": "false", "secrets-refresh-interval": "5m"}, interval, enabled + " is false"},
		"enabled in init":         {dict{"secrets-refresh-enabled": "true", "container-mode": "init"}, enabled, "mode init"},
		"enabled in no mode":      {dict{"secrets-refresh-enabled": "t", "container-mode": ""}, enabled, "mode init"},
		"interval in init":        {dict{"secrets-refresh-interval": "5m", "container-mode": "init"}, interval, "mode init"},
		"interval in application": {dict{"secrets-refresh-interval": "5m", "container-mode": "application"}, interval, "mode application"},
	} {
		t.Run(name, func(t *testing.T) {
			got := problems(t, sources(t, group.with(c.annotations), connection))
			assertOne(t, got, c.key, c.want)
		})
	}
}

func TestRefreshRefusesAllAtOnce(t *testing.T) {
	got := problems(t, sources(t, group.with(dict{"secrets-refresh-interval": "5", "secrets-refresh-enabled": "x", "container-mode": "init"}), connection))
	var keys []string
	for _, p := range got {
		keys = append(keys, strings.TrimPrefix(p.Key, "conjur.org/"))
	}
	if got := strings.Join(keys, " "); got != "secrets-refresh-enabled secrets-refresh-interval secrets-refresh-interval" {
		t.Errorf("got %s", got)
	}
}

func TestMode(t *testing.T) {
	for name, c := range map[string]struct {
		annotation, env string
		want            config.Mode
		warned          bool
	}{
		"not set":             {"", "", config.ModeInit, false},
		"annotation":          {"application", "", config.ModeApplication, false},
		"annotation wins":     {"application", "sidecar", config.ModeApplication, false},
		"environment":         {"", "sidecar", config.ModeSidecar, false},
		"unknown environment": {"", "invalid-mode", config.ModeInit, true},
		"overridden unknown":  {"sidecar", "invalid-mode", config.ModeSidecar, false},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, warnings := load(t, sources(t, group.with(dict{"container-mode": c.annotation}), connection.with(dict{"CONTAINER_MODE": c.env})))
			if cfg.Mode != c.want || (len(warnings) > 0) != c.warned {
				t.Errorf("got %q, warnings %q", cfg.Mode, warnings)
			}
		})
	}
	for _, bad := range []string{"daemon", "", "Sidecar"} {
		annotations := group.with(nil)
		annotations["container-mode"] = bad
		assertOne(t, problems(t, sources(t, annotations, connection)), "conjur.org/container-mode", "is not a container mode; use one of init, application, sidecar, standalone")
	}
}

func TestDestinationRefuses(t *testing.T) {
	const key = "conjur.org/secrets-destination"
	assertOne(t, problems(t, sources(t, group.with(dict{"secrets-destination": ""}), connection)), key, "not set")
	assertOne(t, problems(t, sources(t, group.with(dict{"secrets-destination": "files"}), connection)), key, "use one of file, k8s_secrets")
	assertOne(t, problems(t, sources(t, group.with(dict{"secrets-destination": ""}), connection.with(dict{"SECRETS_DESTINATION": "file"}))),
		"SECRETS_DESTINATION", "only be set by the annotation")
	assertOne(t, problems(t, sources(t, group.with(dict{"secrets-destination": ""}), connection.with(dict{"SECRETS_DESTINATION": "disk"}))),
		"SECRETS_DESTINATION", `"disk" is not a destination`)
}

// The mode standalone has one destination, and all problems that it has with
// what is set are reported beside that.
func TestDestinationOfStandalone(t *testing.T) {
	list := group.with(dict{"container-mode": "standalone", "secrets-destination": "file", "k8s-secrets": "- db"})
	for name, c := range map[string]struct {
		annotations, env dict
		key              string
	}{
		"annotation": {list, nil, "conjur.org/secrets-destination"},
		"variable":   {list.with(dict{"secrets-destination": ""}), dict{"SECRETS_DESTINATION": "file"}, "SECRETS_DESTINATION"},
		"not set":    {list.with(dict{"secrets-destination": ""}), nil, "conjur.org/secrets-destination"},
		"no such":    {list.with(dict{"secrets-destination": "files"}), nil, "conjur.org/secrets-destination"},
	} {
		var keys []string
		for _, p := range problems(t, sources(t, c.annotations, connection.with(c.env))) {
			keys = append(keys, p.Key)
		}
		slices.Sort(keys)
		want := []string{c.key, "MY_POD_NAMESPACE", "conjur.org/k8s-secrets", "conjur.org/namespace-allowlist"}
		slices.Sort(want)
		if !slices.Equal(keys, want) {
			t.Errorf("%s: problems with %q, want %q", name, keys, want)
		}
	}
}

func TestRetry(t *testing.T) {
	for name, c := range map[string]struct {
		annotations, env dict
		want             config.Retry
		warned           bool
	}{
		"annotations":               {dict{"retry-count-limit": "7", "retry-interval-sec": "3"}, nil, config.Retry{Limit: 7, Interval: 3 * time.Second}, false},
		"environment":               {nil, dict{"RETRY_COUNT_LIMIT": "7", "RETRY_INTERVAL_SEC": "3"}, config.Retry{Limit: 7, Interval: 3 * time.Second}, false},
		"annotations win":           {dict{"retry-count-limit": "7"}, dict{"RETRY_COUNT_LIMIT": "8"}, config.Retry{Limit: 7, Interval: time.Second}, false},
		"without end, at once":      {dict{"retry-count-limit": "-1", "retry-interval-sec": "0"}, nil, config.Retry{Limit: -1}, false},
		"too small":                 {dict{"retry-count-limit": "-2"}, nil, config.Retry{Limit: 5, Interval: time.Second}, true},
		"interval too small":        {dict{"retry-interval-sec": "-1"}, nil, config.Retry{Limit: 5, Interval: time.Second}, true},
		"a minute":                  {dict{"retry-interval-sec": "60"}, nil, config.Retry{Limit: 5, Interval: time.Minute}, false},
		"more than a minute":        {dict{"retry-interval-sec": "61"}, nil, config.Retry{Limit: 5, Interval: time.Minute}, true},
		"more than a poll":          {dict{"container-mode": "sidecar", "secrets-refresh-interval": "2s"}, dict{"RETRY_INTERVAL_SEC": "30"}, config.Retry{Limit: 5, Interval: 2 * time.Second}, true},
		"garbage in environment":    {nil, dict{"RETRY_COUNT_LIMIT": "x"}, config.Retry{Limit: 5, Interval: time.Second}, true},
		"too small, in environment": {nil, dict{"RETRY_COUNT_LIMIT": "-7"}, config.Retry{Limit: 5, Interval: time.Second}, true},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, warnings := load(t, sources(t, group.with(c.annotations), connection.with(c.env)))
			if cfg.Retry != c.want || (len(warnings) > 0) != c.warned {
				t.Errorf("got %v, warnings %q", cfg.Retry, warnings)
			}
		})
	}
	assertOne(t, problems(t, sources(t, group.with(dict{"retry-interval-sec": "1s"}), connection)), "conjur.org/retry-interval-sec", "not an integer")
}

func TestRemoval(t *testing.T) {
	for name, c := range map[string]struct {
		annotations, env dict
		remove, exit     bool
	}{
		"f":                      {dict{"remove-deleted-secrets-enabled": "f"}, nil, false, true},
		"environment":            {nil, dict{"REMOVE_DELETED_SECRETS": "false"}, false, true},
		"garbage in environment": {nil, dict{"REMOVE_DELETED_SECRETS": "no"}, true, true},
		"annotation wins":        {dict{"remove-deleted-secrets-enabled": "true"}, dict{"REMOVE_DELETED_SECRETS": "false"}, true, true},
		"stay":                   {dict{"exit-on-revoked": "false"}, nil, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, _ := load(t, sources(t, group.with(c.annotations), connection.with(c.env)))
			if cfg.RemoveDeleted != c.remove || cfg.ExitOnRevoked != c.exit {
				t.Errorf("got %v, %v", cfg.RemoveDeleted, cfg.ExitOnRevoked)
			}
		})
	}
}

func TestLog(t *testing.T) {
	for name, c := range map[string]struct {
		annotations, env dict
		want             config.Log
		warned           bool
	}{
		"environment":         {nil, dict{"LOG_LEVEL": "debug"}, config.Log{Level: "debug", Format: "text"}, false},
		"annotation wins":     {dict{"log-level": "warn"}, dict{"LOG_LEVEL": "debug"}, config.Log{Level: "warn", Format: "text"}, false},
		"unknown environment": {nil, dict{"LOG_LEVEL": "invalid"}, config.Log{Level: "info", Format: "text"}, true},
		"DEBUG":               {nil, dict{"DEBUG": "true"}, config.Log{Level: "debug", Format: "text"}, true},
		"DEBUG off":           {nil, dict{"DEBUG": "false"}, config.Log{Level: "info", Format: "text"}, true},
		"debug-logging":       {dict{"debug-logging": "T"}, nil, config.Log{Level: "debug", Format: "text"}, true},
		"level beats DEBUG":   {dict{"log-level": "error"}, dict{"DEBUG": "true"}, config.Log{Level: "error", Format: "text"}, true},
		"format":              {dict{"log-format": "json"}, nil, config.Log{Level: "info", Format: "json"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, warnings := load(t, sources(t, group.with(c.annotations), connection.with(c.env)))
			if cfg.Log != c.want || (len(warnings) > 0) != c.warned {
				t.Errorf("got %v, warnings %q", cfg.Log, warnings)
			}
		})
	}
	_, warnings := load(t, sources(t, group, connection.with(dict{"DEBUG": "true"})))
	assertOne(t, warnings, "DEBUG", "deprecated; use conjur.org/log-level")
	assertOne(t, problems(t, sources(t, group.with(dict{"log-level": "trace"}), connection)), "conjur.org/log-level", `"trace" is not a log level`)
}
