package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/secretsync/syncer/pkg/targets"
)

// minInterval is the shortest refresh interval.
const minInterval = time.Second

// check tells what is wrong with a setting's text, as far as the setting
// alone can tell.
func (s setting) check(text string) error {
	switch s.kind {
	case kindBoolean:
		if _, err := strconv.ParseBool(text); err != nil {
			return fmt.Errorf("%q is not a Boolean; use true or false", text)
		}
	case kindInteger:
		return s.checkInteger(text)
	case kindDuration:
		return checkDuration(text)
	case kindChoice:
		if !slices.Contains(s.allowed, text) {
			return fmt.Errorf("%q is not a %s; use one of %s", text, s.noun, strings.Join(s.allowed, ", "))
		}
	case kindSignal:
		if unix.SignalNum(text) == 0 {
			return fmt.Errorf("%q is not a signal; use a name such as SIGHUP or SIGTERM", text)
		}
	case kindPermissions:
		_, err := targets.ParsePermissions(text)
		return err
	}
	return nil
}

func (s setting) checkInteger(text string) error {
	n, err := strconv.Atoi(text)
	switch {
	case err != nil:
		return fmt.Errorf("%q is not an integer", text)
	case n < s.min:
		return fmt.Errorf("%d is less than %d", n, s.min)
	case s.max != 0 && n > s.max:
		return fmt.Errorf("%d is more than %d", n, s.max)
	}
	return nil
}

// outOfRange tells whether the text is an integer outside its bounds. The
// Secrets Provider then uses the default, whatever the source is.
func (s setting) outOfRange(text string) bool {
	_, err := strconv.Atoi(text)
	return s.kind == kindInteger && err == nil
}

func checkDuration(text string) error {
	d, err := time.ParseDuration(text)
	switch {
	case err != nil:
		return fmt.Errorf("%q is not a duration; write numbers with the units h, m, s, such as 5m or 1h30m", text)
	case d < minInterval:
		return fmt.Errorf("%q is too short; use at least %v", text, minInterval)
	}
	return nil
}

// emptyIsUnset tells whether an annotation with an empty value counts as not
// set. An enumeration, a Boolean and an integer have no empty value, and a
// group without secrets is not one.
func (s setting) emptyIsUnset() bool {
	switch s.kind {
	case kindText, kindDuration, kindNames, kindPermissions:
		return true
	}
	return false
}

// available lists the allowed values that this version can do.
func (s setting) available() []string {
	return slices.DeleteFunc(slices.Clone(s.allowed), func(text string) bool { return slices.Contains(s.notYet, text) })
}
