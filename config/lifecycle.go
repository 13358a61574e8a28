package config

import (
	"fmt"
	"time"
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
