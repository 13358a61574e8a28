package config

import "time"

// longestRetry is the longest time between two retries.
const longestRetry = time.Minute

// checkDestination checks what the destination alone and with the mode says.
// The mode standalone has one only; all else is checked as for that.
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

// deprecateEnvironment warns of each variable for which there is an
// annotation; how Conjur is reached stays the environment's.
func (l *loader) deprecateEnvironment(mode Mode) {
	for _, s := range fileSettings() {
		if val := l.process[s.name]; val.env && s.annotation != "" && s.section != "conjur" && s.name != "log.debug" { // which is deprecated itself
			l.warn(val.key, "deprecated for the destination k8s_secrets in the mode %s; use the annotation %s%s", mode, domain, s.annotation)
		}
	}
}

// refresh follows the rules of secret rotation: an interval enables it, an
// explicit false beside an interval is a contradiction, and only a process
// that stays can refresh.
func (l *loader) refresh(cfg *Config) {
	interval, enabled := l.process["refresh.interval"], l.process["refresh.enabled"]
	on := enabled.isTrue() || interval.set && (!enabled.set || enabled.bad)
	switch {
	case interval.set && !on:
		l.fail(interval.key, "an interval is set, but %s is false; remove one of the two", enabled.key)
	case on && cfg.Mode.OneShot():
		key := interval.key
		if !interval.set {
			key = enabled.key
		}
		l.fail(key, "secrets cannot be refreshed in the mode %s; use sidecar, or remove it", cfg.Mode)
	case on:
		cfg.Refresh.Enabled = true
		return
	}
	cfg.Refresh = Refresh{}
}

// retry is called when cfg has its refresh.
func (l *loader) retry(cfg *Config) {
	if limit := l.process["retry.limit"]; cfg.Mode == ModeStandalone && (!limit.set || limit.bad) {
		cfg.Retry.Limit = -1
	}
	if longest := cfg.LongestRetry().Truncate(time.Second); cfg.Retry.Interval > longest {
		l.warn(l.key("retry.intervalSeconds"), "%d is more than the %v that are at most between two retries; taken as that", int(cfg.Retry.Interval.Seconds()), cfg.LongestRetry())
		cfg.Retry.Interval = longest
	}
}

// LongestRetry is the longest time between two retries of a delivery: what
// failed is tried no less often than Conjur is polled.
func (c *Config) LongestRetry() time.Duration {
	if c.Refresh.Enabled {
		return min(longestRetry, c.Refresh.Interval)
	}
	return longestRetry
}

// log lets the level win over the older Boolean.
func (l *loader) log(cfg *Config) {
	debug := l.process["log.debug"]
	if debug.set && !debug.bad {
		l.warn(debug.key, "deprecated; use %slog-level or LOG_LEVEL", domain)
	}
	if debug.isTrue() && !l.process["log.level"].set {
		cfg.Log.Level = "debug"
	}
}
