package config

import "time"

const (
	defaultInterval      = 5 * time.Minute
	defaultRetryLimit    = 5
	defaultRetryInterval = 1 // seconds
	longestRetry         = time.Minute
)

// checkDestination checks what the destination alone and with the mode says.
// The mode standalone has one only; all else is checked as for that.
func (l *loader) checkDestination(cfg *Config) {
	val, standalone := l.process[nameDestination], cfg.Mode == ModeStandalone
	switch {
	case val.bad:
	case !val.set && standalone:
		l.fail(l.key(nameDestination), "not set; use k8s_secrets")
	case !val.set:
		l.fail(l.key(nameDestination), "not set; use file or k8s_secrets")
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
	for _, s := range append(processSettings(), clusterSettings()...) {
		if val := l.process[s.name]; val.env && s.annotation != "" && s.name != nameDebug { // which is deprecated itself
			l.warn(val.key, "deprecated for the destination k8s_secrets in the mode %s; use the annotation %s%s", mode, domain, s.annotation)
		}
	}
}

// refresh follows the rules of secret rotation: an interval enables it, an
// explicit false beside an interval is a contradiction, and only a process
// that stays can refresh.
func (l *loader) refresh(mode Mode) Refresh {
	interval, enabled := l.process[nameInterval], l.process[nameRefreshEnabled]
	on := l.boolean(nameRefreshEnabled, interval.set)
	switch {
	case interval.set && !on:
		l.fail(interval.key, "an interval is set, but %s is false; remove one of the two", enabled.key)
		return Refresh{}
	case !on:
		return Refresh{}
	case mode.OneShot():
		key := interval.key
		if !interval.set {
			key = enabled.key
		}
		l.fail(key, "secrets cannot be refreshed in the mode %s; use sidecar, or remove it", mode)
		return Refresh{}
	}
	return Refresh{Enabled: true, Interval: l.duration(nameInterval, defaultInterval)}
}

// retry is called when cfg has its mode and its refresh.
func (l *loader) retry(cfg *Config) Retry {
	limit := defaultRetryLimit
	if cfg.Mode == ModeStandalone {
		limit = -1
	}
	seconds, longest := l.integer(nameRetryInterval, defaultRetryInterval), cfg.LongestRetry()
	if float64(seconds) > longest.Seconds() {
		l.warn(l.key(nameRetryInterval), "%d is more than the %v that are at most between two retries; taken as that", seconds, longest)
		seconds = int(longest.Seconds())
	}
	return Retry{Limit: l.integer(nameRetryLimit, limit), Interval: time.Duration(seconds) * time.Second}
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
func (l *loader) log() Log {
	level := "info"
	if val := l.process[nameDebug]; val.set && !val.bad {
		l.warn(val.key, "deprecated; use %slog-level or LOG_LEVEL", domain)
		if l.boolean(nameDebug, false) {
			level = "debug"
		}
	}
	return Log{Level: l.text(nameLogLevel, level), Format: l.text(nameLogFormat, "text")}
}
