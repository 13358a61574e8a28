package config

import "time"

// The names of settings of sets.
const (
	nameRotationEvery    = "rotation.every"
	nameRotationIdentity = "rotation.identity"
	nameRotationSets     = "rotation.sets"

	nameSet        = "set"
	nameGenerate   = "generate"
	nameEvery      = "every"
	nameCron       = "cron"
	nameBefore     = "before"
	nameWait       = "confirm.wait"
	nameRestarted  = "confirm.restarted"
	nameAsk        = "confirm.ask"
	nameSettle     = "settle"
	nameGrace      = "grace"
	nameKeep       = "keep"
	nameUnused     = "unused"
	nameMigrate    = "migrate"
	nameGiveUp     = "giveUp"
	namePublish    = "publish"
	nameText       = "text"
	nameParts      = "parts"
	nameAdopt      = "adopt"
	nameVariable   = "variable"
	namePostgreSQL = "postgresql"
	nameAPIKeys    = "conjur"
	nameHTTP       = "http"
	nameExec       = "exec"
	nameAddress    = "address"
	nameCommand    = "command"
	nameUsers      = "users"
	nameHosts      = "hosts"
	nameURL        = "url"

	nameRandom   = "random"
	namePassword = "password"
	nameX509     = "x509"
	nameHtpasswd = "htpasswd"
	nameCA       = "ca"
)

// rotationSettings is the table of what the file says of sets of versions.
func rotationSettings() []setting {
	return []setting{
		{name: nameRotationEvery, scope: ScopeSources, kind: kindPeriod, least: time.Second, doc: "How long after one version the next one is made, of each set without a schedule of its own. Without any a version is made on demand."},
		{name: "rotation.perHour", scope: ScopeSources, of: func(s subject) any { return &s.Rotation.PerHour }, kind: kindInteger, min: 1, def: "10", doc: "How many versions are begun in an hour at most, of all sets."},
		{name: "rotation.interval", scope: ScopeSources, of: func(s subject) any { return &s.Rotation.Interval }, kind: kindPeriod, least: time.Second, def: "5s", doc: "The time between two looks at whether somebody changed a set, or sent a command."},
		{name: "rotation.owner", scope: ScopeSources, of: func(s subject) any { return &s.Rotation.Owner }, kind: kindText, follows: "the login that changes sets, in a cluster with the Lease's namespace and name", doc: "What this Syncer is called in the sets. Another one does not change them before a `claim`."},
		{name: "rotation.paused", scope: ScopeSources, of: func(s subject) any { return &s.Rotation.Paused }, kind: kindBoolean, def: "false", doc: "Whether nothing is changed in any set. Delivery goes on."},
		{name: "rotation.fromPolicy", scope: ScopeSources, of: func(s subject) any { return &s.Rotation.FromPolicy }, kind: kindBoolean, def: "false", doc: "Whether the annotations `rotation/ttl` and `rotation/postgresql/password/length` of a variable that a set publishes to say how often, and how long a password, where the set does not. Conjur's own rotator has to be off."},
		{name: nameRotationIdentity, scope: ScopeSources, of: func(s subject) any { return withoutKey(s.Rotation.Conjur) }, kind: kindLabel, follows: "the process's own identity", doc: "The name of the item of `identities` that sets are changed as; it need not serve anything."},
		{name: nameRotationSets, scope: ScopeSources, of: func(s subject) any { return &s.Rotation.Sets }, kind: kindItems, items: rotatedSettings, doc: "The sets that are rotated."},
	}
}

// withoutKey returns how Conjur is reached, as far as it can be compared and
// shown.
func withoutKey(c Conjur) Conjur {
	c.APIKey = Conjur{}.APIKey
	return c
}

// rotatedSettings is the table of an item of the list of sets.
func rotatedSettings() []setting {
	return []setting{
		{name: nameSet, of: func(s subject) any { return &s.rotated.Set }, kind: kindText, required: true, doc: "The id of the variable that is the set."},
		{name: nameGenerate, kind: kindObject, items: generateSettings, doc: "What a version consists of; one kind."},
		{name: nameEvery, of: func(s subject) any { return &s.rotated.Every }, kind: kindPeriod, least: time.Second, follows: "`rotation.every`", doc: "How long after one version the next one is made."},
		{name: nameCron, of: func(s subject) any { return &s.rotated.Cron }, kind: kindText, doc: "When a version is made, as the `schedule` of a CronJob, in UTC."},
		{name: nameBefore, of: func(s subject) any { return &s.rotated.Before }, kind: kindPeriod, least: time.Second, doc: "How long before the primary's certificate expires a version is made."},
		{name: nameWait, of: func(s subject) any { return &s.rotated.Confirm.Wait }, kind: kindPeriod, follows: "3m without `restarted` and `ask`", doc: "Consumers have a version so long after all Secrets of the set have it. Pods that use one of the Secrets and that nothing here names are waited for so long, or 3m."},
		{name: nameRestarted, of: func(s subject) any { return &s.rotated.Confirm.Restarted }, kind: kindTexts, doc: "Workloads that have a version when they were restarted since, each as `deployment/name`."},
		{name: nameAsk, of: func(s subject) any { return &s.rotated.Confirm.Ask }, kind: kindTexts, doc: "Workloads whose Pods are asked which versions they have, each as `deployment/name:port/path`, or the URLs of consumers."},
		{name: nameItsNamespace, of: func(s subject) any { return &s.rotated.Namespace }, kind: kindNamespace, follows: "that of the set's Secrets", doc: "The namespace of the workloads."},
		{name: nameSettle, of: func(s subject) any { return &s.rotated.Settle }, kind: kindPeriod, follows: "60s", doc: "The least age of a Secret's content when Pods are asked last."},
		{name: nameGrace, kind: kindPeriod, follows: "10m", doc: "How long a login stays valid after the last consumer left it."},
		{name: nameKeep, kind: kindPeriod, follows: "24h", doc: "How long a key stays valid after the last consumer left it: the longest life of what is signed with it."},
		{name: nameUnused, of: func(s subject) any { return &s.rotated.Unused }, kind: kindPeriod, doc: "For how long nobody may have used an old key before it goes."},
		{name: nameMigrate, of: func(s subject) any { return &s.rotated.Migrate }, kind: kindText, doc: "A suspended CronJob, as `cronjob/name`, from which a Job is made that has to be complete before an old version goes."},
		{name: nameGiveUp, of: func(s subject) any { return &s.rotated.GiveUp }, kind: kindPeriod, def: "1h", least: time.Second, doc: "How long a login is tried that is not accepted."},
		{name: namePublish, kind: kindMap, items: publishedSettings, short: true, doc: "Variables that follow the primary, by their ids, for readers that know no sets."},
		{name: nameAdopt, kind: kindMap, items: adoptedSettings, short: true, doc: "Variables that become the parts of the first version, by the parts' names."},
		{name: namePostgreSQL, kind: kindObject, items: postgresqlSettings, doc: "A PostgreSQL database whose users take turns."},
		{name: nameAPIKeys, kind: kindObject, items: apiKeysSettings, doc: "Hosts of Conjur that take turns."},
		{name: nameHTTP, kind: kindObject, items: httpSettings, doc: "A service that is sent each step."},
		{name: nameExec, kind: kindObject, items: execSettings, doc: "A program that is run for each step; for `syncer rotate run`."},
	}
}

// generateSettings is the table of what a version consists of.
func generateSettings() []setting {
	return []setting{
		{name: nameRandom, of: func(s subject) any { return &s.rotated.Generate.Random }, kind: kindInteger, min: 16, max: 1024, def: "0", doc: "So many random bytes; part `key`."},
		{name: namePassword, kind: kindObject, items: passwordSettings, doc: "A password; part `password`."},
		{name: "rsa", of: func(s subject) any { return &s.rotated.Generate.RSA }, kind: kindInteger, min: 2048, max: 4096, def: "0", doc: "An RSA pair of so many bits: 2048, 3072 or 4096; parts `private` and `public`."},
		{name: "ecdsa", of: func(s subject) any { return &s.rotated.Generate.ECDSA }, kind: kindChoice, noun: "curve", allowed: []string{"P-256", "P-384", "P-521"}, doc: "An ECDSA pair on that curve; parts `private` and `public`."},
		{name: "ed25519", of: func(s subject) any { return &s.rotated.Generate.Ed25519 }, kind: kindBoolean, doc: "An Ed25519 pair; parts `private` and `public`."},
		{name: "ssh", of: func(s subject) any { return &s.rotated.Generate.SSH }, kind: kindBoolean, doc: "An Ed25519 pair in OpenSSH's form; parts `private` and `public`."},
		{name: nameX509, kind: kindObject, items: x509Settings, doc: "A certificate and its ECDSA key; parts `crt` and `private`."},
		{name: "uuid", of: func(s subject) any { return &s.rotated.Generate.UUID }, kind: kindBoolean, doc: "A random UUID; part `uuid`."},
		{name: nameHtpasswd, kind: kindObject, items: htpasswdSettings, doc: "A password and its line for htpasswd; parts `password` and `htpasswd`."},
	}
}

func passwordSettings() []setting {
	return []setting{
		{name: "length", of: func(s subject) any { return &s.password.Length }, kind: kindInteger, min: 16, max: 256, follows: "32", doc: "In characters."},
		{name: "alphabet", of: func(s subject) any { return &s.password.Alphabet }, kind: kindText, follows: "letters and digits", doc: "At least 10 different characters."},
	}
}

func htpasswdSettings() []setting {
	return append(passwordSettings(), setting{name: "user", of: func(s subject) any { return &s.password.User }, kind: kindText, required: true, doc: "The user of the line."})
}

func x509Settings() []setting {
	return []setting{
		{name: "subject", of: func(s subject) any { return &s.rotated.Generate.X509.Subject }, kind: kindText, doc: "The common name."},
		{name: "names", of: func(s subject) any { return &s.rotated.Generate.X509.Names }, kind: kindTexts, doc: "DNS names and IP addresses."},
		{name: "days", of: func(s subject) any { return &s.rotated.Generate.X509.Days }, kind: kindInteger, min: 1, max: 3650, follows: "90", doc: "For how long it is valid."},
		{name: "authority", of: func(s subject) any { return &s.rotated.Generate.X509.Authority }, kind: kindBoolean, doc: "Whether it may sign others."},
		{name: nameCA, of: func(s subject) any { return &s.rotated.Generate.X509.CA }, kind: kindText, follows: "it signs itself", doc: "The set whose primary signs it."},
	}
}

func publishedSettings() []setting {
	return []setting{
		{name: nameText, kind: kindText, doc: "A part's name, or a template of parts, such as `postgres://{{.username}}:{{.password}}@db/shop`."},
		{name: nameParts, kind: kindTexts, doc: "The set itself with these parts only, such as the public ones."},
	}
}

func adoptedSettings() []setting {
	return []setting{{name: nameVariable, kind: kindText, required: true, doc: "The variable's id."}}
}

func postgresqlSettings() []setting {
	return []setting{
		{name: nameAddress, of: func(s subject) any { return &s.rotated.PostgreSQL.Address }, kind: kindTexts, required: true, doc: "The database as `host:port/database`; of several, each has to accept a login, and the one that is no standby is changed. A host that begins with a slash is the folder of a socket."},
		{name: "admin", of: func(s subject) any { return &s.rotated.PostgreSQL.Admin }, kind: kindText, required: true, doc: "The variable with the administrator's `{\"username\":…,\"password\":…}`."},
		{name: nameUsers, of: func(s subject) any { return &s.rotated.PostgreSQL.Users }, kind: kindTexts, required: true, doc: "The users that take turns, two or more."},
		{name: "endSessions", of: func(s subject) any { return &s.rotated.PostgreSQL.EndSessions }, kind: kindBoolean, def: "false", doc: "Whether the sessions of a user that is refused are ended."},
		{name: "ca", of: func(s subject) any { return &s.rotated.PostgreSQL.CA }, kind: kindText, follows: "the system's authorities", doc: "A file with the authorities that the database's certificate is verified with; its name is verified too."},
		{name: "plain", of: func(s subject) any { return &s.rotated.PostgreSQL.Plain }, kind: kindBoolean, def: "false", doc: "Whether to do without TLS, as where a mesh encrypts."},
	}
}

func apiKeysSettings() []setting {
	return []setting{{name: nameHosts, of: func(s subject) any { return &s.rotated.APIKeys.Hosts }, kind: kindTexts, required: true, doc: "The ids of the hosts that take turns, two or more."}}
}

func httpSettings() []setting {
	return []setting{
		{name: nameURL, of: func(s subject) any { return &s.rotated.HTTP.URL }, kind: kindText, required: true, doc: "Where each step is sent."},
		{name: "key", of: func(s subject) any { return &s.rotated.HTTP.Key }, kind: kindText, required: true, doc: "The variable with the key that signs what is sent."},
		{name: "ca", of: func(s subject) any { return &s.rotated.HTTP.CA }, kind: kindText, follows: "the system's authorities", doc: "A file with the authorities that its certificate is verified with."},
	}
}

func execSettings() []setting {
	return []setting{
		{name: nameCommand, of: func(s subject) any { return &s.rotated.Exec.Command }, kind: kindTexts, required: true, doc: "The program and its arguments."},
		{name: "key", of: func(s subject) any { return &s.rotated.Exec.Key }, kind: kindText, doc: "The variable with the key that signs what it reads; without any nothing is signed."},
	}
}
