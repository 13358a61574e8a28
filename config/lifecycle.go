package config

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// longestRetry is the longest time between two retries.
const longestRetry = time.Minute

// checkDestination checks the settings of the destination, alone and with the mode. The
// mode standalone has only one destination. All other settings are then checked for it.
func (l *loader) checkDestination(cfg *Config) {
	val, standalone := l.process["secretsDestination"], cfg.Mode == ModeStandalone
	switch {
	case val.bad:
	case !val.set && standalone:
		l.fail(l.key("secretsDestination"), "not set; use k8s_secrets")
	case !val.set:
		l.fail(l.key("secretsDestination"), "not set; use file or k8s_secrets")
	case standalone && cfg.Destination == DestinationFile:
		l.fail(val.key, "the mode standalone cannot have the destination file; use k8s_secrets")
	case val.env && cfg.Destination == DestinationFile:
		l.fail(val.key, "the destination file can only be set by the annotation %ssecrets-destination or the configuration file", domain)
	}
	if standalone {
		cfg.Destination = DestinationKubernetes
	}
	if cfg.Destination == DestinationKubernetes && (cfg.Mode == ModeInit || cfg.Mode == ModeSidecar) {
		l.deprecateEnvironment(cfg.Mode)
	}
}

// deprecateEnvironment warns of each variable that has a corresponding annotation. The
// variables for the connection to Conjur are not deprecated. Neither is the default
// interval, which is set by those who add the container to a Pod.
func (l *loader) deprecateEnvironment(mode Mode) {
	for _, s := range fileSettings() {
		if val := l.process[s.name]; val.env && s.annotation != "" && s.section != "conjur" && s.name != "log.debug" && s.name != "refresh.interval" { // log.debug is deprecated anyway
			l.warn(val.key, "deprecated for the destination k8s_secrets in the mode %s; use the annotation %s%s", mode, domain, s.annotation)
		}
	}
}

// refresh follows the rules of secret rotation. An interval enables the refresh. An
// explicit false next to an interval is a contradiction. Only a process that keeps
// running can refresh. An interval from the environment is only a default: the chart sets
// it for each sidecar that it adds, whatever the Pod's annotations say.
func (l *loader) refresh(cfg *Config) {
	interval, enabled := l.process["refresh.interval"], l.process["refresh.enabled"]
	decided := enabled.set && !enabled.bad
	on := enabled.isTrue() || interval.set && !decided
	switch {
	case interval.env && (decided && !on || cfg.Mode.OneShot()) && !enabled.isTrue():
	case interval.set && !on:
		l.fail(interval.key, "an interval is set, but %s is false; remove one of the two", enabled.key)
	case on && cfg.Mode.OneShot():
		key := interval.key
		if !interval.set || interval.env {
			key = enabled.key
		}
		l.fail(key, "the mode %s cannot refresh secrets; use sidecar, or remove this setting", cfg.Mode)
	case on:
		cfg.Refresh.Enabled = true
		return
	}
	cfg.Refresh = Refresh{}
	if !decided && !cfg.Mode.OneShot() {
		cfg.hints = append(cfg.hints, Problem{l.key("refresh.interval"), fmt.Sprintf("not set: each value is delivered once and never refreshed, as by the Secrets Provider; set an interval such as 5m, or %s to false", l.key("refresh.enabled"))})
	}
}

// Hints are remarks for a person who checks a configuration, or starts a process with it.
// Nothing is wrong, but the person may expect something else. A nil Config has none.
func (c *Config) Hints() []Problem {
	if c == nil {
		return nil
	}
	return c.hints
}

// retry must be called after cfg has its refresh.
func (l *loader) retry(cfg *Config) {
	if limit := l.process["retry.limit"]; cfg.Mode == ModeStandalone && (!limit.set || limit.bad) {
		cfg.Retry.Limit = -1
	}
	if longest := cfg.LongestRetry().Truncate(time.Second); cfg.Retry.Interval > longest {
		l.warn(l.key("retry.intervalSeconds"), "%d is more than the maximum, %v; using the maximum", int(cfg.Retry.Interval.Seconds()), cfg.LongestRetry())
		cfg.Retry.Interval = longest
	}
}

// LongestRetry is the longest time between two retries of a delivery. It is at most the
// interval at which Syncer polls Conjur.
func (c *Config) LongestRetry() time.Duration {
	if c.Refresh.Enabled {
		return min(longestRetry, c.Refresh.Interval)
	}
	return longestRetry
}

// log gives the level precedence over the older Boolean.
func (l *loader) log(cfg *Config) {
	debug := l.process["log.debug"]
	if debug.set && !debug.bad {
		l.warn(debug.key, "deprecated; use %slog-level or LOG_LEVEL", domain)
	}
	if debug.isTrue() && !l.process["log.level"].set {
		cfg.Log.Level = "debug"
	}
}

// defaultServerAddress is the default of the mode standalone.
const defaultServerAddress = ":8080"

// freshIntervals is how many refresh intervals a target may be without proof
// that it is fresh: one refresh may fail and be tried again.
const freshIntervals = 3

// signal is for the application that runs beside; other modes have none.
func (l *loader) signal(cfg *Config) {
	name := l.process["restartApp.signal"]
	for _, key := range []string{"restartApp.user", "restartApp.command"} {
		if val := l.process[key]; val.set && !name.set {
			l.warn(val.key, "not used without %s", l.key("restartApp.signal"))
		}
	}
	if name.set && !name.bad && cfg.Mode == ModeSidecar {
		cfg.Signal.Number = unix.SignalNum(name.text)
		return
	}
	if name.set && !name.bad {
		l.warn(name.key, "used in the mode sidecar only; ignored")
	}
	cfg.Signal = Signal{}
}

// inPlace is for the Pod of a sidecar: the process of another mode ends by itself, or is
// in another Pod.
func (l *loader) inPlace(cfg *Config) {
	on := l.process["restartApp.inPlace"]
	for _, key := range []string{"restartApp.every", "restartApp.warning"} {
		if val := l.process[key]; val.set && !cfg.InPlace.Enabled {
			l.warn(val.key, "not used without %s", l.key("restartApp.inPlace"))
		}
	}
	if cfg.InPlace.Enabled && cfg.Mode != ModeSidecar {
		l.warn(on.key, "used in the mode sidecar only; ignored")
	}
	if !cfg.InPlace.Enabled || cfg.Mode != ModeSidecar {
		cfg.InPlace = InPlace{}
	}
}

func (l *loader) server(cfg *Config) {
	s, address, fresh := &cfg.Server, l.process["server.address"], l.process["health.freshness"]
	switch {
	case cfg.Mode == ModeStandalone && !address.set:
		s.Address = defaultServerAddress
	case address.set && cfg.Mode.OneShot():
		l.warn(address.key, "not used in the mode %s, which ends when all is delivered", cfg.Mode)
		s.Address = ""
	}
	if s.Status && s.Address == "" {
		l.warn(l.key("server.status"), "not used without %s", l.key("server.address"))
		s.Status = false
	}
	if token := l.process["server.statusTokenFile"]; token.set && !s.Status {
		l.warn(token.key, "not used without %s", l.key("server.status"))
	}
	switch {
	case !cfg.Refresh.Enabled && fresh.set:
		l.warn(fresh.key, "not used without refresh")
		s.Freshness = 0
	case !fresh.set || fresh.bad:
		s.Freshness = freshIntervals * cfg.Refresh.Interval
	}
}
