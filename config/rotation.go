package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/secretsync/syncer/pkg/render"
	"github.com/secretsync/syncer/pkg/rotation/generate"
	"github.com/secretsync/syncer/pkg/rotation/versions"
)

// Rotation contains the sets of versions that Syncer rotates. The zero Rotation has no
// sets.
type Rotation struct {
	_       time.Duration `name:"rotation.every" kind:"period" scope:"sources" least:"1s"`
	PerHour int           `name:"rotation.perHour" scope:"sources" min:"1" default:"10"` // new versions that are begun in an hour, of all sets; at least 1
	// Interval is the time between two checks for changes of a set by others.
	Interval time.Duration `name:"rotation.interval" kind:"period" scope:"sources" least:"1s" default:"5s"`
	// Owner is the name of this Syncer in the sets.
	Owner  string `name:"rotation.owner" scope:"sources" follows:"the login that changes sets, in a cluster with the Lease's namespace and name"`
	Paused bool   `name:"rotation.paused" scope:"sources" default:"false"` // nothing is changed
	// FromPolicy fills in omitted settings of sets. It takes them from the annotations of
	// published variables for Conjur's own rotators.
	FromPolicy bool `name:"rotation.fromPolicy" scope:"sources" default:"false"`
	// StepsFile stores the highest step of each set. If empty, only targets store it.
	StepsFile string `name:"rotation.stepsFile" scope:"sources"`
	// Conjur is the connection for sets: it uses the identity that rotates.
	Conjur Conjur       `name:"rotation.identity" kind:"label" scope:"sources" follows:"the process's own identity"`
	Sets   []RotatedSet `name:"rotation.sets" scope:"sources"` // no two of one variable
}

// RotatedSet is one set of versions and its rotation settings.
type RotatedSet struct {
	Set      string          `name:"set" is:"required"` // the variable's id
	Generate generate.Config `name:"generate"`

	// Every, Cron and Before determine when to create a version. Every counts from the
	// last version, Cron contains the times of a cron line, and Before counts back from
	// the expiry of the primary. Without these settings, versions are created only on
	// demand.
	Every  time.Duration `name:"every" kind:"period" least:"1s" follows:"\"rotation.every\""`
	Cron   string        `name:"cron"`
	Times  cron.Schedule // of Cron; nil: none
	Before time.Duration `name:"before" kind:"period" least:"1s"`
	// General means that the set has none of these settings, and Every is the default of
	// all sets.
	General bool

	Confirm   Confirm
	Namespace string `name:"namespace" kind:"namespace" follows:"that of the set's Secrets"` // of the workloads; empty: that of the set's Secrets
	// Settle is the minimum age of a Secret's content before the last question to Pods.
	Settle time.Duration `name:"settle" kind:"period" default:"60s"`
	// Keep is the minimum time that a version stays valid after the last consumer stopped
	// using it. The settings are grace for logins and keep for keys.
	Keep   time.Duration `name:"keep" kind:"period" follows:"24h"`
	_      time.Duration `name:"grace" kind:"period" follows:"10m"`
	Unused time.Duration `name:"unused" kind:"period"` // the time that it must be unused before; 0: none
	// Migrate is the CronJob of the migration, as "cronjob/name", or empty.
	Migrate string        `name:"migrate"`
	GiveUp  time.Duration `name:"giveUp" kind:"period" least:"1s" default:"1h"` // how long a version may fail to be accepted
	// Timeout limits one act outside. 0 means 30 s. The maximum is three times Conjur's
	// HTTPTimeout.
	Timeout time.Duration `name:"timeout" kind:"period" least:"1s" follows:"30s, or three times \"conjur.httpTimeoutSeconds\" if that is less"`

	Publish map[string]render.Published `name:"publish" is:"short"` // by the variable's id
	Adopt   map[string]string           // the variable's id by the part that it becomes
	_       map[string]adopted          `name:"adopt" is:"short"`

	// At most one is set. Without one, the versions are keys.
	PostgreSQL *PostgreSQL `name:"postgresql"`
	MySQL      *MySQL      `name:"mysql"`
	RabbitMQ   *RabbitMQ   `name:"rabbitmq"`
	Redis      *Redis      `name:"redis"`
	APIKeys    *APIKeys    `name:"conjur"`
	HTTP       *HTTP       `name:"http"`
	Exec       *Exec       `name:"exec"`
	AWS        *AWS        `name:"aws"`
	GCP        *GCP        `name:"gcp"`
	Azure      *Azure      `name:"azure"`
}

// Outside reports whether an outside system must accept each version.
func (s RotatedSet) Outside() bool {
	_, server := s.Server()
	return server != nil || s.issuedOutside() || s.HTTP != nil || s.Exec != nil
}

// Confirm determines how to confirm that the consumers of a set have a version. All given
// conditions must hold. The zero Confirm is met at once.
type Confirm struct {
	Wait      time.Duration `name:"confirm.wait" kind:"period" follows:"3m without \"restarted\" and \"ask\""` // since all Secrets of the set have it
	Restarted []string      `name:"confirm.restarted" kind:"texts"`                                            // workloads, each once, as "deployment/name"
	// Ask are workloads whose Pods Syncer asks, each as "deployment/name:port/path". For
	// consumers that are not Pods, it contains their URLs.
	Ask []string `name:"confirm.ask" kind:"texts"`
	// Namespaces are those whose Secrets and Pods are consumers. If empty, they are all
	// namespaces whose identity may read the set.
	Namespaces []string `name:"confirm.namespaces" kind:"texts" follows:"all namespaces whose identity may read the set"`
}

// Login is the server that a login is for, and its users.
type Login struct {
	Address []string `name:"address" kind:"texts" is:"required"` // all have to accept a login
	Admin   string   `name:"admin" is:"required"`                // the variable with the administrator's username and password
	Users   []string `name:"users" kind:"texts" is:"required"`
	// EndSessions ends the sessions of a user when its login is disabled.
	EndSessions bool `name:"endSessions" default:"false"`
	// CA is a file with the trusted authorities. If empty, they are the system's
	// authorities.
	CA    string `name:"ca" follows:"the system's authorities"`
	Plain bool   `name:"plain" default:"false"` // without TLS
}

// PostgreSQL is a database with alternating users, two or more. Each address is
// host:port/database.
type PostgreSQL struct {
	Login
	// Pooler are PgBouncers, each host:port, whose clients count as users of a login.
	Pooler []string `name:"pooler" kind:"texts"`
}

// MySQL is a MySQL or MariaDB. One user has an old and a new password; two or more take
// turns. Each address is host:port.
type MySQL struct{ Login }

// RabbitMQ is a server with alternating users, two or more. Each address is host:port of AMQP.
type RabbitMQ struct {
	Login
	API   string `name:"api" is:"required"` // https://host:port of the management API
	VHost string `name:"vhost" default:"/"` // in which a login is tried
}

// Redis is a Redis or Valkey with one user, which has an old and a new password. Each address
// is host:port.
type Redis struct{ Login }

// Server returns the server whose users have the set's logins, and the name of its
// setting. It returns nil for other sets.
func (s RotatedSet) Server() (name string, of *Login) {
	switch {
	case s.PostgreSQL != nil:
		return "postgresql", &s.PostgreSQL.Login
	case s.MySQL != nil:
		return "mysql", &s.MySQL.Login
	case s.RabbitMQ != nil:
		return "rabbitmq", &s.RabbitMQ.Login
	case s.Redis != nil:
		return "redis", &s.Redis.Login
	}
	return "", nil
}

// cutDatabase divides host:port/database. The host may be a folder.
func cutDatabase(address string) (host, database string) {
	at := strings.LastIndex(address, "/")
	return address[:max(at, 0)], address[at+1:]
}

// APIKeys are alternating Conjur hosts.
type APIKeys struct {
	Hosts []string `name:"hosts" kind:"texts" is:"required"` // each an id
}

// HTTP is a service that receives each step.
type HTTP struct {
	URL string `name:"url" is:"required"` // https, or of loopback
	Key string `name:"key" is:"required"` // the variable with the key that signs requests
	// CA is a file with the trusted authorities. If empty, they are the system's
	// authorities.
	CA string `name:"ca" follows:"the system's authorities"`
}

// Exec is a program that Syncer runs for each step.
type Exec struct {
	Command []string `name:"command" kind:"texts" is:"required"`
	Key     string   `name:"key"` // the variable with the key that signs steps; empty: they are not signed
}

// holders contains the name of the owner of each variable and each login.
type holders map[string]string

// checkSeparate checks that sets share nothing: each variable and each login belongs to one set.
func (l *loader) checkSeparate(items []item, sets []RotatedSet) {
	variables, logins := holders{}, holders{}
	for i, set := range sets {
		if set.Set == "" {
			continue
		}
		key := items[i]["set"].key
		if of := variables[set.Set]; of == "the set "+set.Set {
			l.fail(key, "the set %q is listed twice", set.Set)
		}
		for _, own := range [][2]string{{set.Set, "the set " + set.Set}, {versions.ControlOf(set.Set), "the control variable of the set " + set.Set}} {
			if of := variables[own[0]]; of != "" && of != own[1] {
				l.fail(key, "%q is both %s and %s; name another variable", own[0], of, own[1])
			}
			variables[own[0]] = own[1]
		}
		for login, at := range set.logins(items[i]) {
			if of := logins[login]; of != "" && of != set.Set {
				l.fail(at, "%s is in the set %s too; two sets cannot change one login", login, of)
			}
			logins[login] = set.Set
		}
	}
	for i, set := range sets {
		for _, id := range slices.Sorted(maps.Keys(set.Publish)) {
			key := fmt.Sprintf("%s.%s", items[i]["publish"].key, id)
			if of := variables[id]; of != "" {
				l.fail(key, "%q is %s; publish to another variable", id, of)
				continue
			}
			variables[id] = "published by the set " + set.Set
		}
	}
	for i, set := range sets {
		for part, id := range set.Adopt {
			if of := variables[id]; of != "" && of != "published by the set "+set.Set {
				l.fail(fmt.Sprintf("%s.%s", items[i]["adopt"].key, part), "%q is %s; adopt another variable", id, of)
			}
		}
		l.authority(items[i], set, sets, variables)
	}
}

// authority checks the set that signs the certificates of another set. If it is listed,
// it must be a set of authorities.
func (l *loader) authority(it item, set RotatedSet, sets []RotatedSet, variables holders) {
	if set.Generate.X509 == nil || set.Generate.X509.CA == "" {
		return
	}
	ca, key := set.Generate.X509.CA, it["generate"].object()["x509"].object()["ca"].key
	i := slices.IndexFunc(sets, func(s RotatedSet) bool { return s.Set == ca })
	switch {
	case ca == set.Set:
		l.fail(key, "the set cannot sign itself by its id; leave ca out for a certificate that signs itself")
	case i >= 0 && (sets[i].Generate.X509 == nil || !sets[i].Generate.X509.Authority):
		l.fail(key, "the set %q generates no authority; name a set with generate: {x509: {authority: true}}", ca)
	case i < 0 && variables[ca] != "":
		l.fail(key, "%q is %s; name the set of an authority", ca, variables[ca])
	}
}

// logins returns the logins that the set changes outside, each with the key of the
// setting that names it. Users belong to a server, regardless of the database.
func (s RotatedSet) logins(it item) map[string]string {
	logins := map[string]string{}
	if name, p := s.Server(); p != nil {
		for _, address := range p.Address {
			host := address
			if s.PostgreSQL != nil {
				host, _ = cutDatabase(address)
			}
			for _, user := range p.Users {
				logins[fmt.Sprintf("the user %s of %s", user, host)] = it[name].object()["users"].key
			}
		}
	}
	if s.APIKeys != nil {
		for _, host := range s.APIKeys.Hosts {
			logins["the host "+host] = it["conjur"].object()["hosts"].key
		}
	}
	if name, _, _ := s.cloud(); name != "" {
		logins[s.cloudHolder()] = it[name].key
	}
	return logins
}
