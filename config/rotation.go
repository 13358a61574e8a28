package config

import (
	"time"

	"github.com/secretsync/syncer/pkg/rotation/generate"
)

// Rotation is the sets of versions that Syncer rotates. The zero Rotation is
// none.
type Rotation struct {
	_       time.Duration `name:"rotation.every" kind:"period" scope:"sources" least:"1s"`
	PerHour int           `name:"rotation.perHour" scope:"sources" min:"1" default:"10"` // new versions that are begun in an hour, of all sets; at least 1
	// Interval is the time between two looks at whether somebody changed a set.
	Interval time.Duration `name:"rotation.interval" kind:"period" scope:"sources" least:"1s" default:"5s"`
	// Owner is what this Syncer is called in the sets.
	Owner  string `name:"rotation.owner" scope:"sources" follows:"the login that changes sets, in a cluster with the Lease's namespace and name"`
	Paused bool   `name:"rotation.paused" scope:"sources" default:"false"` // nothing is changed
	// FromPolicy: what the annotations of published variables ask of Conjur's own
	// rotators fills in what sets leave out.
	FromPolicy bool `name:"rotation.fromPolicy" scope:"sources" default:"false"`
	// StepsFile keeps the highest step of each set; empty: nothing does beside targets.
	StepsFile string `name:"rotation.stepsFile" scope:"sources"`
	// Conjur is how the sets are reached: as the identity that rotates.
	Conjur Conjur       `name:"rotation.identity" kind:"label" scope:"sources" follows:"the process's own identity"`
	Sets   []RotatedSet `name:"rotation.sets" scope:"sources"` // no two of one variable
}

// RotatedSet is one set of versions and how it is rotated.
type RotatedSet struct {
	Set      string          `name:"set" is:"required"` // the variable's id
	Generate generate.Config `name:"generate"`

	// Every, Cron and Before are when a new version is made: that long after the
	// last one, at the times of a cron line, and so long before the primary
	// expires. Without any it is made on demand.
	Every  time.Duration `name:"every" kind:"period" least:"1s" follows:"\"rotation.every\""`
	Cron   string        `name:"cron"`
	Before time.Duration `name:"before" kind:"period" least:"1s"`
	// General: it says none of these, and Every is that of all sets.
	General bool

	Confirm   Confirm
	Namespace string `name:"namespace" kind:"namespace" follows:"that of the set's Secrets"` // of the workloads; empty: that of the set's Secrets
	// Settle is the least age of a Secret's content when Pods are asked last.
	Settle time.Duration `name:"settle" kind:"period" default:"60s"`
	// Keep is the least time that a version stays valid after the last consumer
	// left it: grace for logins, keep for keys.
	Keep   time.Duration `name:"keep" kind:"period" follows:"24h"`
	_      time.Duration `name:"grace" kind:"period" follows:"10m"`
	Unused time.Duration `name:"unused" kind:"period"` // so long nobody may have used it; 0: that does not matter
	// Migrate is the CronJob of the migration, as "cronjob/name"; empty: none.
	Migrate string        `name:"migrate"`
	GiveUp  time.Duration `name:"giveUp" kind:"period" least:"1s" default:"1h"` // how long a version may fail to be accepted
	// Timeout bounds one act outside; 0: 30 s, and three times Conjur's HTTPTimeout at most.
	Timeout time.Duration `name:"timeout" kind:"period" least:"1s" follows:"30s, or three times \"conjur.httpTimeoutSeconds\" if that is less"`

	Publish map[string]Published `name:"publish" is:"short"` // by the variable's id
	Adopt   map[string]string    // the variable's id by the part that it becomes
	_       map[string]adopted   `name:"adopt" is:"short"`

	// At most one is set. None: the versions are keys.
	PostgreSQL *PostgreSQL `name:"postgresql"`
	APIKeys    *APIKeys    `name:"conjur"`
	HTTP       *HTTP       `name:"http"`
	Exec       *Exec       `name:"exec"`
}

// Outside reports whether something outside has to accept each version.
func (s RotatedSet) Outside() bool {
	return s.PostgreSQL != nil || s.APIKeys != nil || s.HTTP != nil || s.Exec != nil
}

// Confirm is how it is known that the consumers of a set are where they have to
// be. All that is given must hold. The zero Confirm is met at once.
type Confirm struct {
	Wait      time.Duration `name:"confirm.wait" kind:"period" follows:"3m without \"restarted\" and \"ask\""` // since all Secrets of the set have it
	Restarted []string      `name:"confirm.restarted" kind:"texts"`                                            // workloads, each once, as "deployment/name"
	// Ask are workloads whose Pods are asked, each as "deployment/name:port/path",
	// or the URLs of consumers that are no Pods.
	Ask []string `name:"confirm.ask" kind:"texts"`
	// Namespaces are those whose Secrets and Pods are consumers; none: all whose
	// identity may read the set.
	Namespaces []string `name:"confirm.namespaces" kind:"texts" follows:"all namespaces whose identity may read the set"`
}

// Published is a variable that follows the primary of a set.
type Published struct {
	Text  string   `name:"text"`               // a part's name, or a template of parts
	Parts []string `name:"parts" kind:"texts"` // or the set itself with these parts only, if Text is empty
}

// PostgreSQL is a database whose users take turns.
type PostgreSQL struct {
	Address []string `name:"address" kind:"texts" is:"required"` // each host:port/database; all have to accept a login
	Admin   string   `name:"admin" is:"required"`                // the variable with the administrator's username and password
	Users   []string `name:"users" kind:"texts" is:"required"`   // two or more
	// EndSessions ends the sessions of a user that is refused.
	EndSessions bool `name:"endSessions" default:"false"`
	// CA is a file with the authorities that are trusted; empty: the system's.
	CA    string `name:"ca" follows:"the system's authorities"`
	Plain bool   `name:"plain" default:"false"` // without TLS
}

// APIKeys is hosts of Conjur that take turns.
type APIKeys struct {
	Hosts []string `name:"hosts" kind:"texts" is:"required"` // each an id
}

// HTTP is a service that is sent each step.
type HTTP struct {
	URL string `name:"url" is:"required"` // https, or of loopback
	Key string `name:"key" is:"required"` // the variable with the key that signs requests
	// CA is a file with the authorities that are trusted; empty: the system's.
	CA string `name:"ca" follows:"the system's authorities"`
}

// Exec is a program that is run for each step.
type Exec struct {
	Command []string `name:"command" kind:"texts" is:"required"`
	Key     string   `name:"key"` // the variable with the key that signs steps; empty: they are not signed
}
