package config

import (
	"fmt"
	"math"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/secretsync/syncer/internal/brief"
	"github.com/secretsync/syncer/internal/lazyregexp"
	"github.com/secretsync/syncer/pkg/targets/definitions"
)

// checkText returns the problem with a setting's text that can be found without other
// settings.
func (s setting) checkText(text string) error {
	switch s.kind {
	case kindBoolean:
		if _, err := strconv.ParseBool(text); err != nil {
			return fmt.Errorf("%.200q is not a Boolean; use true or false", text)
		}
	case kindInteger, kindPercent:
		_, err := s.integer(text)
		return err
	case kindDuration, kindPeriod:
		_, err := s.duration(text)
		return err
	case kindChoice:
		if !slices.Contains(s.allowed, text) {
			return fmt.Errorf("%.200q is not a %s; use one of %s", text, s.noun, strings.Join(s.allowed, ", "))
		}
	case kindPermissions:
		_, err := definitions.ParsePermissions(text)
		return err
	default:
		if check := checks()[s.kind]; check != nil {
			return check(text)
		}
	}
	return nil
}

// checks are the checks that need only the text.
func checks() map[kind]func(string) error {
	return map[kind]func(string) error{
		kindAddress:     checkAddress,
		kindSignal:      checkSignal,
		kindUser:        checkUser,
		kindCommand:     checkCommand,
		kindConfigMap:   checkConfigMap,
		kindNodeSecrets: func(text string) error { _, err := definitions.ParseNodeSecrets(text); return err },
		kindObjectName:  definitions.CheckObjectName,
		kindNamespace:   checkLabel,
		kindLabel:       checkLabel,
	}
}

// integer reads a number, or a percentage, where off means 0.
func (s setting) integer(text string) (int, error) {
	if s.kind == kindPercent {
		return parsePercent(text)
	}
	n, err := strconv.Atoi(text)
	switch {
	case err != nil:
		return 0, fmt.Errorf("%.200q is not an integer", text)
	case n < s.min:
		return n, fmt.Errorf("%d is less than %d", n, s.min)
	case s.max != 0 && n > s.max:
		return n, fmt.Errorf("%d is more than %d", n, s.max)
	}
	return n, nil
}

func parsePercent(text string) (int, error) {
	if text == "off" {
		return 0, nil
	}
	n, err := strconv.Atoi(strings.TrimSuffix(text, "%"))
	if err != nil || n < 0 || n > 100 {
		return 0, fmt.Errorf("%.200q is not a percentage; use a number from 1 to 100, or off", text)
	}
	return n, nil
}

// outOfRange reports whether the text is an integer outside its bounds.
func (s setting) outOfRange(text string) bool {
	_, err := strconv.Atoi(text)
	return s.kind == kindInteger && err == nil
}

// duration reads a duration, or a number of seconds.
func (s setting) duration(text string) (time.Duration, error) {
	if s.kind == kindInteger {
		n, err := s.integer(text)
		return time.Duration(min(int64(n), math.MaxInt64/int64(time.Second))) * time.Second, err
	}
	d, err := time.ParseDuration(text)
	if s.kind == kindPeriod {
		d, err = parsePeriod(text)
	}
	switch {
	case err != nil:
		return 0, fmt.Errorf("%.200q is not a duration; write numbers with the units h, m, s, such as 5m or 1h30m", text)
	case d < s.least:
		return d, fmt.Errorf("%.200q is too short; use at least %v", text, s.least)
	}
	return d, nil
}

// parsePeriod reads a duration that may begin with days.
func parsePeriod(text string) (time.Duration, error) {
	days, rest, ok := strings.Cut(text, "d")
	if !ok {
		return time.ParseDuration(text)
	}
	n, err := strconv.ParseUint(days, 10, 16)
	if err != nil || rest == "" {
		return time.Duration(n) * 24 * time.Hour, err
	}
	d, err := time.ParseDuration(rest)
	return time.Duration(n)*24*time.Hour + d, err
}

func checkAddress(text string) error {
	_, port, err := net.SplitHostPort(text)
	if n, bad := strconv.ParseUint(port, 10, 16); err != nil || bad != nil || n == 0 {
		return fmt.Errorf("%s is not an address to listen on; write host:port, or :port for every address", brief.Address(text))
	}
	return nil
}

// signals are those of Linux, on all its processors that Syncer is built for. The system
// of this process does not matter: the commands that check a configuration run elsewhere.
var signals = strings.Fields(`SIGHUP SIGINT SIGQUIT SIGILL SIGTRAP SIGABRT SIGBUS SIGFPE SIGKILL
	SIGUSR1 SIGSEGV SIGUSR2 SIGPIPE SIGALRM SIGTERM SIGSTKFLT SIGCHLD SIGCONT SIGSTOP SIGTSTP
	SIGTTIN SIGTTOU SIGURG SIGXCPU SIGXFSZ SIGVTALRM SIGPROF SIGWINCH SIGIO SIGPWR SIGSYS`)

// checkSignal refuses signals that stop a process, because nothing would continue it.
func checkSignal(text string) error {
	upper := strings.ToUpper(text)
	switch known := slices.Contains(signals, text); {
	case !known && slices.Contains(signals, "SIG"+upper):
		return fmt.Errorf("%.200q is not a signal; did you mean SIG%s?", text, upper)
	case !known && slices.Contains(signals, upper):
		return fmt.Errorf("%.200q is not a signal; did you mean %s?", text, upper)
	case !known:
		return fmt.Errorf("%.200q is not a signal; use a name such as SIGHUP or SIGTERM", text)
	case slices.Contains([]string{"SIGSTOP", "SIGTSTP", "SIGTTIN", "SIGTTOU"}, text):
		return fmt.Errorf("%s stops a process forever; use a signal that it can handle, such as SIGHUP, or that ends it, such as SIGTERM", text)
	}
	return nil
}

// userName is the form that both POSIX and useradd accept.
var userName = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9._-]*\$?$`)

func checkUser(text string) error {
	if n, err := strconv.ParseUint(text, 10, 32); err == nil && n < math.MaxUint32 || userName().MatchString(text) {
		return nil
	}
	return fmt.Errorf("%.200q is neither a user's number nor a name", text)
}

func checkCommand(text string) error {
	if strings.ContainsAny(text, "/\x00") || text == "." || text == ".." {
		return fmt.Errorf("%.200q is not the name of an executable; write it without folders and arguments, such as java", text)
	}
	return nil
}

// emptyIsUnset reports whether an annotation with an empty value counts as not set. An
// enumeration, a Boolean and a number have no empty value. A group without secrets is
// invalid.
func (s setting) emptyIsUnset() bool {
	switch s.kind {
	case kindBoolean, kindInteger, kindPercent, kindChoice, kindSignal, kindEntries, kindNodeSecrets:
		return false
	}
	return true
}
