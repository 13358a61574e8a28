package config

import (
	"time"

	"github.com/secretsync/syncer/pkg/generate"
)

// Rotation is the sets of versions that Syncer rotates. The zero Rotation is
// none.
type Rotation struct {
	PerHour int  // new versions that are begun in an hour, of all sets; at least 1
	Paused  bool // nothing is changed
	// FromPolicy: what the annotations of published variables ask of Conjur's own
	// rotators fills in what sets leave out.
	FromPolicy bool
	// Interval is the time between two looks at whether somebody changed a set.
	Interval time.Duration
	Owner    string // what this Syncer is called in the sets
	// Conjur is how the sets are reached: as the identity that rotates.
	Conjur Conjur
	Sets   []RotatedSet // no two of one variable
}

// RotatedSet is one set of versions and how it is rotated.
type RotatedSet struct {
	Set      string // the variable's id
	Generate generate.Config

	// Every, Cron and Before are when a new version is made: that long after the
	// last one, at the times of a cron line, and so long before the primary
	// expires. Without any it is made on demand.
	Every  time.Duration
	Cron   string
	Before time.Duration
	// General: it says none of these, and Every is that of all sets.
	General bool

	Confirm   Confirm
	Namespace string // of the workloads; empty: that of the set's Secrets
	// Settle is the least age of a Secret's content when Pods are asked last.
	Settle time.Duration
	// Keep is the least time that a version stays valid after the last consumer
	// left it: grace for logins, keep for keys.
	Keep    time.Duration
	Unused  time.Duration // so long nobody may have used it; 0: that does not matter
	Migrate string        // the CronJob of the migration, as "cronjob/name"; empty: none
	GiveUp  time.Duration // how long a version may fail to be accepted

	Publish map[string]Published // by the variable's id
	Adopt   map[string]string    // the variable's id by the part that it becomes

	// At most one is set. None: the versions are keys.
	PostgreSQL *PostgreSQL
	APIKeys    *APIKeys
	HTTP       *HTTP
	Exec       *Exec
}

// Outside reports whether something outside has to accept each version.
func (s RotatedSet) Outside() bool {
	return s.PostgreSQL != nil || s.APIKeys != nil || s.HTTP != nil || s.Exec != nil
}

// Confirm is how it is known that the consumers of a set are where they have to
// be. All that is given must hold. The zero Confirm is met at once.
type Confirm struct {
	Wait      time.Duration // since all Secrets of the set have it
	Restarted []string      // workloads, each once, as "deployment/name"
	// Ask are workloads whose Pods are asked, each as "deployment/name:port/path",
	// or the URLs of consumers that are no Pods.
	Ask []string
}

// Published is a variable that follows the primary of a set.
type Published struct {
	Text  string   // a part's name, or a template of parts
	Parts []string // or the set itself with these parts only, if Text is empty
}

// PostgreSQL is a database whose users take turns.
type PostgreSQL struct {
	Address []string // each host:port/database; all have to accept a login
	Admin   string   // the variable with the administrator's username and password
	Users   []string // two or more
	// EndSessions ends the sessions of a user that is refused.
	EndSessions bool
	CA          string // file with the authorities that are trusted; empty: the system's
	Plain       bool   // without TLS
}

// APIKeys is hosts of Conjur that take turns.
type APIKeys struct {
	Hosts []string // each an id
}

// HTTP is a service that is sent each step.
type HTTP struct {
	URL string // https, or of loopback
	Key string // the variable with the key that signs requests
	CA  string // file with the authorities that are trusted; empty: the system's
}

// Exec is a program that is run for each step.
type Exec struct {
	Command []string
	Key     string // the variable with the key that signs steps; empty: they are not signed
}
