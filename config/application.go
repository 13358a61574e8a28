package config

import "golang.org/x/sys/unix"

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
