package config

import (
	"regexp"
	"strings"
	"time"
)

// actuator reads the settings of the outside system that must accept the versions.
func (l *loader) actuator(it item, set *RotatedSet) {
	first := ""
	for _, name := range []string{"postgresql", "conjur", "http", "exec", "aws", "gcp", "azure"} {
		val := it[name]
		if !val.set {
			continue
		}
		if first != "" {
			l.fail(val.key, "the set has %s too; remove one of the two", first)
		}
		if first = name; !bad(val.object()) {
			l.checkActuator(val.object(), set)
		}
	}
}

// longestAct limits the duration of one act outside.
const longestAct = 10 * time.Minute

// timed checks the duration limit of an act outside.
func (l *loader) timed(it item, set *RotatedSet) {
	val := it["timeout"]
	switch {
	case !val.set || val.bad:
	case set.APIKeys != nil:
		l.fail(val.key, "conjur.httpTimeoutSeconds limits requests to Conjur; remove this setting")
	case !set.Outside():
		l.fail(val.key, "a set without an actuator sends no requests; remove this setting")
	case set.Timeout > longestAct:
		l.fail(val.key, "%v is too long; use at most 10m", set.Timeout)
	}
}

// notOfTheForm names a list's address by its place, because its text may contain a password.
const notOfTheForm = "address %d is not of the form host:port"

// databaseForm leaves out the parameters of a connection URL, which may contain a password.
var databaseForm = regexp.MustCompile(`^[^?@]+$`)

// serverForm is a host and a port, where the host may be the folder of a socket.
var serverForm = regexp.MustCompile(`^(/[^@:]+|\[[0-9A-Fa-f:.%a-z]+\]|[^@:/\s]+):[0-9]{1,5}$`)

// checkActuator makes the checks that the form of a setting does not imply.
func (l *loader) checkActuator(it item, set *RotatedSet) {
	turns := func(name, noun string, of []string) {
		different := map[string]bool{}
		for _, name := range of {
			different[name] = true
		}
		if len(different) < max(len(of), 2) {
			l.fail(it[name].key, "fewer than two different %s; name at least two, or the old login ends before a consumer has the new one", noun)
		}
	}
	l.checkCloud(it)
	switch {
	case set.PostgreSQL != nil:
		turns("users", "users", set.PostgreSQL.Users)
		if len(set.PostgreSQL.Address) == 0 {
			l.fail(it["address"].key, "no database is named; write one as host:port/database")
		}
		for i, address := range set.PostgreSQL.Address {
			if at := strings.LastIndex(address, "/"); at < 0 || !serverForm.MatchString(address[:at]) || !databaseForm.MatchString(address[at+1:]) {
				l.fail(it["address"].key, notOfTheForm+"/database", i+1)
			}
		}
		for i, address := range set.PostgreSQL.Pooler {
			if !serverForm.MatchString(address) {
				l.fail(it["pooler"].key, notOfTheForm, i+1)
			}
		}
	case set.APIKeys != nil:
		turns("hosts", "hosts", set.APIKeys.Hosts)
	case set.Exec != nil:
		if len(set.Exec.Command) == 0 || set.Exec.Command[0] == "" {
			l.fail(it["command"].key, "no program is named; write its path and its arguments")
		}
	case set.HTTP != nil:
		if !encrypted(set.HTTP.URL) {
			l.fail(it["url"].key, "it must be a URL with https://, or with http:// and a loopback address, because passwords are sent there, and without a user or password")
		}
	}
}
