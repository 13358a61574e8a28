package config

import (
	"time"

	"golang.org/x/sys/unix"
)

const (
	defaultConfirmations = 2
	defaultGrace         = 10 * time.Second
	defaultBrake         = "50"
	defaultBrakeHold     = 10 * time.Minute
	defaultServerAddress = ":8080"
	// freshIntervals is how many refresh intervals a target may be without
	// proof that it is fresh: one refresh may fail and be tried again.
	freshIntervals = 3
)

func (l *loader) removal() Removal {
	brake, _ := parsePercent(l.text(nameBrake, defaultBrake)) // checked when it was read
	return Removal{
		Confirmations: l.integer(nameConfirmations, defaultConfirmations),
		Grace:         l.duration(nameGrace, defaultGrace),
		Brake:         brake,
		BrakeHold:     l.duration(nameBrakeHold, defaultBrakeHold),
	}
}

// signal is for the application that runs beside; other modes have none.
func (l *loader) signal(mode Mode) Signal {
	name := l.process[nameSignal]
	for _, key := range []string{nameSignalUser, nameSignalCommand} {
		if val := l.process[key]; val.set && !name.set {
			l.warn(val.key, "not used without %s", l.key(nameSignal))
		}
	}
	switch {
	case !name.set || name.bad:
		return Signal{}
	case mode != ModeSidecar:
		l.warn(name.key, "used in the mode sidecar only; ignored")
		return Signal{}
	}
	return Signal{
		Number: unix.SignalNum(name.text), Name: name.text,
		User: l.text(nameSignalUser, ""), Command: l.text(nameSignalCommand, ""),
	}
}

func (l *loader) server(cfg *Config) Server {
	var s Server
	address := l.process[nameServerAddress]
	switch {
	case cfg.Mode == ModeStandalone:
		s.Address = l.text(nameServerAddress, defaultServerAddress)
	case address.set && cfg.Mode.OneShot():
		l.warn(address.key, "not used in the mode %s, which ends when all is delivered", cfg.Mode)
	default:
		s.Address = l.text(nameServerAddress, "")
	}
	s.Tried = l.text(nameReady, readyDelivered) == readyTried
	fresh := l.process[nameFreshness]
	switch {
	case cfg.Refresh.Enabled:
		s.Freshness = l.duration(nameFreshness, freshIntervals*cfg.Refresh.Interval)
	case fresh.set:
		l.warn(fresh.key, "not used without refresh")
	}
	return s
}
