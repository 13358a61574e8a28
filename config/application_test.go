package config_test

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/secretsync/syncer/config"
)

func TestRemovalSettings(t *testing.T) {
	def := config.Removal{Confirmations: 2, Grace: 10 * time.Second, Brake: 50, BrakeHold: 10 * time.Minute}
	for name, c := range map[string]struct {
		annotations, env dict
		want             config.Removal
	}{
		"not set":         {nil, nil, def},
		"annotations":     {dict{"removal-confirmations": "5", "removal-grace": "90s", "removal-brake": "75", "removal-brake-hold": "1h"}, nil, config.Removal{Confirmations: 5, Grace: 90 * time.Second, Brake: 75, BrakeHold: time.Hour}},
		"environment":     {nil, dict{"REMOVAL_CONFIRMATIONS": "1", "REMOVAL_GRACE": "0s", "REMOVAL_BRAKE": "off", "REMOVAL_BRAKE_HOLD": "1s"}, config.Removal{Confirmations: 1, BrakeHold: time.Second}},
		"annotations win": {dict{"removal-brake": "off"}, dict{"REMOVAL_BRAKE": "10"}, config.Removal{Confirmations: 2, Grace: 10 * time.Second, BrakeHold: 10 * time.Minute}},
		"zero is off":     {dict{"removal-brake": "0"}, nil, config.Removal{Confirmations: 2, Grace: 10 * time.Second, BrakeHold: 10 * time.Minute}},
		"with its sign":   {dict{"removal-brake": "100%"}, nil, config.Removal{Confirmations: 2, Grace: 10 * time.Second, Brake: 100, BrakeHold: 10 * time.Minute}},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, warnings := load(t, sources(t, group.with(c.annotations), connection.with(c.env)))
			if cfg.Removal != c.want || len(warnings) > 0 {
				t.Errorf("got %+v, %v", cfg.Removal, warnings)
			}
		})
	}
	for name, c := range map[string]struct {
		annotations, env dict
		key, want        string
	}{
		"none":           {dict{"removal-confirmations": "0"}, nil, "conjur.org/removal-confirmations", "less than 1"},
		"none, variable": {nil, dict{"REMOVAL_CONFIRMATIONS": "0"}, "REMOVAL_CONFIRMATIONS", "less than 1"},
		"negative":       {dict{"removal-grace": "-1s"}, nil, "conjur.org/removal-grace", "at least 0s"},
		"no unit":        {nil, dict{"REMOVAL_GRACE": "5"}, "REMOVAL_GRACE", "not a duration"},
		"too much":       {dict{"removal-brake": "101"}, nil, "conjur.org/removal-brake", "from 1 to 100, or off"},
		"less than none": {dict{"removal-brake": "-1"}, nil, "conjur.org/removal-brake", "from 1 to 100, or off"},
		"empty":          {dict{"removal-brake": "%"}, nil, "conjur.org/removal-brake", "from 1 to 100, or off"},
		"no hold":        {dict{"removal-brake-hold": "0s"}, nil, "conjur.org/removal-brake-hold", "at least 1s"},
	} {
		t.Run(name, func(t *testing.T) {
			assertOne(t, problems(t, sources(t, group.with(c.annotations), connection.with(c.env))), c.key, c.want)
		})
	}
}

func TestSignal(t *testing.T) {
	cfg, warnings := load(t, sources(t, group.with(dict{"restart-app-signal": "SIGHUP"}), connection))
	if cfg.Signal != (config.Signal{Number: syscall.SIGHUP, Name: "SIGHUP"}) || len(warnings) > 0 {
		t.Errorf("got %+v, %v", cfg.Signal, warnings)
	}
	cfg, _ = load(t, sources(t, group.with(dict{"restart-app-signal": "SIGKILL", "restart-app-user": "app-1", "restart-app-command": "my server"}), connection))
	if cfg.Signal != (config.Signal{Number: syscall.SIGKILL, Name: "SIGKILL", User: "app-1", Command: "my server"}) {
		t.Errorf("got %+v", cfg.Signal)
	}
	if cfg, _ := load(t, sources(t, group, connection)); cfg.Signal != (config.Signal{}) {
		t.Errorf("without the annotation: %+v", cfg.Signal)
	}
	const key = "conjur.org/restart-app-signal"
	for text, want := range map[string]string{
		"SIGNOTHING": `"SIGNOTHING" is not a signal`, "": "is not a signal", "1": "is not a signal", "hup": "did you mean SIGHUP?", "sigterm": "did you mean SIGTERM?",
		"SIGSTOP": "stops a process forever", "SIGTSTP": "stops", "SIGTTIN": "stops", "SIGTTOU": "stops",
	} {
		annotations := group.with(nil)
		annotations["restart-app-signal"] = text
		assertOne(t, problems(t, sources(t, annotations, connection)), key, want)
	}
	for name, c := range map[string]struct{ annotations, want string }{
		"a path":      {"restart-app-command", "/usr/bin/java"},
		"a number":    {"restart-app-user", "-1"},
		"a huge user": {"restart-app-user", "4294967295"},
		"two names":   {"restart-app-user", "a b"},
	} {
		got := problems(t, sources(t, group.with(dict{"restart-app-signal": "SIGHUP", c.annotations: c.want}), connection))
		if len(got) != 1 || got[0].Key != "conjur.org/"+c.annotations {
			t.Errorf("%s: got %q", name, got)
		}
	}
}

func TestSignalWarns(t *testing.T) {
	for _, name := range []string{"restart-app-user", "restart-app-command"} {
		_, warnings := load(t, sources(t, group.with(dict{name: "x"}), connection))
		assertOne(t, warnings, "conjur.org/"+name, "not used without conjur.org/restart-app-signal")
	}
	cfg, warnings := load(t, sources(t, group.with(dict{"container-mode": "init", "restart-app-signal": "SIGHUP"}), connection))
	assertOne(t, warnings, "conjur.org/restart-app-signal", "sidecar only")
	if cfg.Signal != (config.Signal{}) {
		t.Errorf("got %+v", cfg.Signal)
	}
}

func TestRestoreDeletedFiles(t *testing.T) {
	for text, want := range map[string]bool{"never": false, "refresh": true} {
		if cfg, _ := load(t, sources(t, group.with(dict{"restore-deleted-files": text}), connection)); cfg.RestoreDeletedFiles != want {
			t.Errorf("%s: got %v", text, cfg.RestoreDeletedFiles)
		}
	}
	if cfg, _ := load(t, sources(t, group, connection)); !cfg.RestoreDeletedFiles {
		t.Error("not set: false")
	}
	assertOne(t, problems(t, sources(t, group.with(dict{"restore-deleted-files": "always"}), connection)), "conjur.org/restore-deleted-files", "use one of refresh, never")
}

func TestServer(t *testing.T) {
	refresh := dict{"secrets-refresh-interval": "20s"}
	for name, c := range map[string]struct {
		annotations, env dict
		want             config.Server
	}{
		"sidecar":               {group, nil, config.Server{}},
		"sidecar, set":          {group.with(dict{"server-address": "127.0.0.1:9000"}), dict{"SERVER_ADDRESS": ":1"}, config.Server{Address: "127.0.0.1:9000"}},
		"sidecar, environment":  {group, dict{"SERVER_ADDRESS": "[::1]:9000"}, config.Server{Address: "[::1]:9000"}},
		"sidecar with refresh":  {group.with(refresh), nil, config.Server{Freshness: time.Minute}},
		"standalone":            {standalone, nil, config.Server{Address: ":8080"}},
		"standalone, set":       {standalone, dict{"SERVER_ADDRESS": ":8081"}, config.Server{Address: ":8081"}},
		"status":                {standalone, dict{"SERVER_STATUS": "true", "SERVER_STATUS_TOKEN_FILE": "/t"}, config.Server{Address: ":8080", Status: true, StatusTokenFile: "/t"}},
		"bound":                 {group.with(refresh).with(dict{"health-freshness": "5m"}), nil, config.Server{Freshness: 5 * time.Minute}},
		"bound, by environment": {group.with(refresh), dict{"HEALTH_FRESHNESS": "1s"}, config.Server{Freshness: time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, warnings := load(t, sources(t, c.annotations, inCluster.with(c.env)))
			if cfg.Server != c.want || len(warnings) > 0 {
				t.Errorf("got %+v, %v", cfg.Server, warnings)
			}
		})
	}
	for _, bad := range []string{"8080", "localhost", ":http", ":0", ":65536", "a:b:c", "1.2.3.4"} {
		assertOne(t, problems(t, sources(t, group.with(dict{"server-address": bad}), connection)), "conjur.org/server-address", "not an address to listen on")
	}
	_, warnings := load(t, sources(t, group.with(dict{"container-mode": "init"}), connection.with(dict{"SERVER_ADDRESS": ":1"})))
	assertOne(t, warnings, "SERVER_ADDRESS", "not used in the mode init")
	_, warnings = load(t, sources(t, group.with(dict{"server-status": "true"}), connection))
	assertOne(t, warnings, "conjur.org/server-status", "not used without conjur.org/server-address")
	_, warnings = load(t, sources(t, standalone, inCluster.with(dict{"SERVER_STATUS_TOKEN_FILE": "/t"})))
	assertOne(t, warnings, "SERVER_STATUS_TOKEN_FILE", "not used without")
	_, warnings = load(t, sources(t, group.with(dict{"health-freshness": "5m"}), connection))
	assertOne(t, warnings, "conjur.org/health-freshness", "not used without refresh")
}

func TestRestartInPlace(t *testing.T) {
	on := dict{"restart-app-in-place": "true"}
	for name, c := range map[string]struct {
		annotations dict
		want        config.InPlace
		warns       string // "" for none
	}{
		"not set":      {nil, config.InPlace{}, ""},
		"switched on":  {on, config.InPlace{Enabled: true, Every: time.Minute}, ""},
		"all":          {on.with(dict{"restart-app-every": "10m", "restart-app-warning": "30s"}), config.InPlace{Enabled: true, Every: 10 * time.Minute, Warning: 30 * time.Second}, ""},
		"without it":   {dict{"restart-app-warning": "30s"}, config.InPlace{}, "not used without conjur.org/restart-app-in-place"},
		"another mode": {on.with(dict{"container-mode": "init"}), config.InPlace{}, "used in the mode sidecar only"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, warnings := load(t, sources(t, group.with(c.annotations), connection))
			if cfg.InPlace != c.want || (c.warns == "") != (len(warnings) == 0) || c.warns != "" && !strings.Contains(warnings[0].Message, c.warns) {
				t.Errorf("got %+v, %v", cfg.InPlace, warnings)
			}
		})
	}
	assertOne(t, problems(t, sources(t, group.with(on.with(dict{"restart-app-every": "999ms"})), connection)), "conjur.org/restart-app-every", "at least 1s")
}
