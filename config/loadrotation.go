package config

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/secretsync/syncer/internal/lazyregexp"
	"github.com/secretsync/syncer/pkg/render"
	"github.com/secretsync/syncer/pkg/rotation/generate"
	"github.com/secretsync/syncer/pkg/rotation/versions"
	"github.com/secretsync/syncer/pkg/secret"
	"github.com/secretsync/syncer/pkg/targets/definitions"
)

// The defaults that depend on the kind of a set.
const (
	defaultWait  = 3 * time.Minute
	defaultGrace = 10 * time.Minute
	defaultKeep  = 24 * time.Hour
)

// LoadRotation reads the rotation settings from a configuration file and the environment,
// for a process that delivers nothing. It reports problems as Load does.
func LoadRotation(src Sources) (Rotation, []Problem, error) {
	l := newLoader(src)
	if !l.addFile(src.ConfigFile, &l.report) {
		return Rotation{}, l.warnings, &InvalidError{l.problems}
	}
	l.addEnvironment(l.src.Getenv, &l.report)
	cfg := &Config{}
	fill(fileSettings(), l.process, reflect.ValueOf(cfg))
	l.conjur(cfg)
	cfg.Mode, cfg.Kubernetes = "", Kubernetes{} // this process delivers nothing
	l.loadRotation(cfg)
	if len(cfg.Rotation.Sets) == 0 && len(l.problems) == 0 {
		l.fail(src.ConfigFile.Name, "the file has no %s; list the sets to rotate", "rotation.sets")
	}
	if len(l.problems) > 0 {
		return Rotation{}, l.warnings, &InvalidError{l.problems}
	}
	return cfg.Rotation, l.warnings, nil
}

// loadRotation checks and completes the rotation settings.
func (l *loader) loadRotation(cfg *Config) {
	list := l.process["rotation.sets"]
	switch {
	case len(list.items) == 0:
		cfg.Rotation = Rotation{}
		return
	case cfg.Mode != "" && cfg.Mode != ModeStandalone:
		l.warn(list.key, "sets are rotated in the mode standalone, or by \"syncer rotate run\"; ignored")
		cfg.Rotation = Rotation{}
		return
	}
	cfg.Rotation.Conjur = l.loadRotationIdentity(cfg)
	if own := &cfg.Rotation.Owner; *own == "" {
		if *own = cfg.Rotation.Conjur.Login; cfg.Kubernetes.LeaderElection.Lease != "" {
			*own = strings.TrimSpace(*own + " " + cfg.Kubernetes.LeaderElection.Namespace + "/" + cfg.Kubernetes.LeaderElection.Lease)
		}
	}
	sets, _ := find(fileSettings(), "rotation.sets")
	for _, it := range list.items {
		cfg.Rotation.Sets = append(cfg.Rotation.Sets, l.loadSet(it, sets.items))
	}
	l.checkSeparate(list.items, cfg.Rotation.Sets)
}

// loadRotationIdentity returns the connection settings for changes of sets.
func (l *loader) loadRotationIdentity(cfg *Config) Conjur {
	name := l.process["rotation.identity"]
	if !name.set || name.bad {
		return cfg.Conjur
	}
	for _, id := range cfg.Identities {
		if id.Name == name.text {
			return id.Conjur
		}
	}
	i := slices.IndexFunc(l.process["identities"].items, func(id item) bool { return id["name"].text == name.text })
	if i < 0 {
		l.fail(name.key, "no item of identities has the name %q; add one", name.text)
		return cfg.Conjur
	}
	return l.identityConjur(l.process["identities"].items[i], cfg.Conjur)
}

// loadSet reads one set.
func (l *loader) loadSet(it item, table []setting) RotatedSet {
	var set RotatedSet
	fill(table, it, reflect.ValueOf(&set))
	l.loadActuator(it, &set)
	l.loadTimeout(it, &set)
	l.loadGenerate(it, &set)
	l.loadSchedule(it, &set)
	l.loadKeep(it, &set)
	l.loadConfirm(it, &set)
	l.loadPublish(it, &set)
	for i, part := range it["adopt"].keys {
		if set.Adopt == nil {
			set.Adopt = map[string]string{}
		}
		set.Adopt[part] = it["adopt"].items[i]["variable"].text
		if !versions.IsPart(part) {
			l.fail(fmt.Sprintf("%s.%s", it["adopt"].key, part), "the name of a part %s", versions.PartRule)
		}
	}
	l.checkCloudSet(it, set)
	return set
}

// loadGenerate reads the parts of a version.
func (l *loader) loadGenerate(it item, set *RotatedSet) {
	val := it["generate"]
	if !val.set {
		if !set.Outside() {
			l.fail(it["set"].key, "the set has neither generate nor an actuator; add one, such as generate: {random: 32}")
		} else if !set.issuedOutside() {
			set.Generate.Password = &generate.Password{}
		}
		return
	}
	g := val.object()
	if err := set.Generate.Check(); err != nil && !bad(g) {
		l.failAll(val.key, err)
	}
	_, server := set.Server()
	switch {
	case server != nil && set.Generate.Password == nil && !bad(g):
		l.fail(val.key, "users of a server have passwords; generate a password, or remove this setting")
	case set.APIKeys != nil:
		l.fail(val.key, "Conjur creates the API keys; remove this setting")
	case set.issuedOutside():
		l.fail(val.key, "the cloud creates the keys; remove this setting")
	}
}

// bad reports whether a problem of an item was already reported.
func bad(it item) bool {
	for _, val := range it {
		if val.bad || slices.ContainsFunc(val.items, bad) {
			return true
		}
	}
	return false
}

// loadSchedule reads when to create a version.
func (l *loader) loadSchedule(it item, set *RotatedSet) {
	switch {
	case it["every"].set && it["cron"].set:
		l.fail(it["cron"].key, "the set also has every; remove one of the two")
	case it["cron"].set:
		var err error
		if set.Times, err = parseCron(set.Cron); err != nil {
			l.failAll(it["cron"].key, err)
		}
	case !it["every"].set && !it["before"].set:
		set.General = true
		if every := l.process["rotation.every"]; every.set && !every.bad {
			set.Every, _ = parsePeriod(every.text)
		}
	}
	if it["before"].set && set.Generate.X509 == nil {
		l.fail(it["before"].key, "only certificates expire; use it with generate: {x509: …}")
	}
}

// parseCron reads a schedule in UTC. It refuses time zones, which the library looks up in
// files of the host: the result would depend on the machine and its image.
func parseCron(text string) (cron.Schedule, error) {
	if strings.Contains(strings.ToUpper(text), "TZ") {
		return nil, fmt.Errorf("%.200q names a time zone; write the times in UTC, without it", text)
	}
	times, err := cron.ParseStandard(text)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%.200q is not a schedule in the syntax of a CronJob, such as \"0 3 * * 0\": %w", text, err)
	case times.Next(time.Unix(0, 0).UTC()).IsZero():
		return nil, fmt.Errorf("no date matches %.200q; write a day that exists", text)
	}
	return times, nil
}

// keepName is the name of the setting for Keep.
func (s RotatedSet) keepName() string {
	if s.Outside() {
		return "grace"
	}
	return "keep"
}

// loadKeep reads how long an old version stays, and the other settings that depend on the
// kind of the set.
func (l *loader) loadKeep(it item, set *RotatedSet) {
	other, why := "grace", "keys have keep"
	set.Keep = defaultKeep
	if set.Outside() {
		other, why = "keep", "logins have grace"
		set.Keep = defaultGrace
	}
	name := set.keepName()
	if it[name].set {
		set.Keep, _ = parsePeriod(it[name].text)
	}
	if it[other].set {
		l.fail(it[other].key, "%s instead", why)
	}
	if _, err := definitions.ParseCronJob(set.Migrate); it["migrate"].set && err != nil {
		l.failAll(it["migrate"].key, err)
	}
}

// loadConfirm checks how consumers confirm a version. If no confirmation is configured, the
// rotation waits for a time.
func (l *loader) loadConfirm(it item, set *RotatedSet) {
	for _, text := range set.Confirm.Ask {
		if _, err := definitions.ParseEndpoint(text); err != nil {
			l.failAll(it["confirm.ask"].key, err)
		}
	}
	if len(set.Confirm.Restarted) > 0 {
		workloads, err := definitions.ParseWorkloads(strings.Join(set.Confirm.Restarted, "\n"))
		if set.Confirm.Restarted = workloads; err != nil {
			l.failAll(it["confirm.restarted"].key, err)
		}
	}
	for _, namespace := range set.Confirm.Namespaces {
		if err := checkLabel(namespace); err != nil {
			l.failAll(it["confirm.namespaces"].key, err)
		}
	}
	if !it["confirm.wait"].set && len(set.Confirm.Ask)+len(set.Confirm.Restarted) == 0 {
		set.Confirm.Wait = defaultWait
	}
}

// loadActuator reads the settings of the outside system that must accept the versions.
func (l *loader) loadActuator(it item, set *RotatedSet) {
	first := ""
	for _, name := range []string{"postgresql", "mysql", "redis", "rabbitmq", "conjur", "http", "exec", "aws", "gcp", "azure"} {
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

// loadTimeout checks the duration limit of an act outside.
func (l *loader) loadTimeout(it item, set *RotatedSet) {
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
var databaseForm = lazyregexp.New(`^[^?@\s]([^?@]*[^?@\s])?$`)

var (
	hostForm   = lazyregexp.New(`^(\[[0-9A-Fa-f:.%a-z]+\]|[^@:/\s]+)$`)
	folderForm = lazyregexp.New(`^/[^@:]+$`) // of a socket
)

// isServer reports whether a text is a host and a port. The host may be a folder if
// folders is true.
func isServer(text string, folders bool) bool {
	at := max(strings.LastIndex(text, ":"), 0)
	return isPort(strings.TrimPrefix(text[at:], ":")) && (hostForm().MatchString(text[:at]) || folders && folderForm().MatchString(text[:at]))
}

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
		l.checkAddresses(set, it["address"], set.PostgreSQL.Address, "/database")
		l.checkAddresses(set, it["pooler"], set.PostgreSQL.Pooler, "")
	case set.MySQL != nil:
		if len(set.MySQL.Users) != 1 {
			turns("users", "users", set.MySQL.Users)
		}
		l.checkAddresses(set, it["address"], set.MySQL.Address, "")
	case set.RabbitMQ != nil:
		turns("users", "users", set.RabbitMQ.Users)
		l.checkAddresses(set, it["address"], set.RabbitMQ.Address, "")
		if rest, plain := strings.CutPrefix(set.RabbitMQ.API, "http://"); strings.ContainsAny(rest, "?#") || !mayCarrySecrets(set.RabbitMQ.API) && (!set.RabbitMQ.Plain || !plain || !mayCarrySecrets("https://"+rest)) {
			l.fail(it["api"].key, "it must be a URL such as https://mq.shop:15671, without a user or password; http:// requires \"plain: true\"")
		}
		if len(set.RabbitMQ.VHost) > 255 {
			l.fail(it["vhost"].key, "it is too long; the name of a virtual host has at most 255 bytes")
		}
	case set.Redis != nil:
		if users := set.Redis.Users; len(users) != 1 || users[0] == "default" {
			l.fail(it["users"].key, "name one user, which has the old and the new password; the user default cannot be rotated")
		}
		l.checkAddresses(set, it["address"], set.Redis.Address, "")
	case set.APIKeys != nil:
		turns("hosts", "hosts", set.APIKeys.Hosts)
	case set.Exec != nil:
		if len(set.Exec.Command) == 0 || set.Exec.Command[0] == "" {
			l.fail(it["command"].key, "no program is named; write its path and its arguments")
		}
	case set.HTTP != nil:
		if !mayCarrySecrets(set.HTTP.URL) {
			l.fail(it["url"].key, "it must be a URL with https://, or with http:// and a loopback address, because passwords are sent there, and without a user or password")
		}
	}
}

// checkAddresses checks the form of a list of servers, each host:port or
// host:port/database.
func (l *loader) checkAddresses(of *RotatedSet, val value, addresses []string, more string) {
	if val.set && len(addresses) == 0 {
		l.fail(val.key, "no server is named; write one as host:port%s", more)
	}
	for i, address := range addresses {
		host, database := address, "none"
		if more != "" {
			host, database = cutDatabase(address)
		}
		if !isServer(host, of.PostgreSQL != nil) || !databaseForm().MatchString(database) {
			l.fail(val.key, notOfTheForm+more, i+1)
		}
	}
}

// loadPublish reads the variables that follow the primary.
func (l *loader) loadPublish(it item, set *RotatedSet) {
	val := it["publish"]
	for i, id := range val.keys {
		p := val.items[i]
		switch {
		case p["text"].set == p["parts"].set:
			l.fail(fmt.Sprintf("%s.%s", val.key, id), "name a part or write a template, or list parts; one of the two")
		case p["parts"].set && len(p["parts"].texts()) == 0:
			l.fail(fmt.Sprintf("%s.%s", val.key, id), "the list is empty; name a part")
		}
		if set.Publish == nil {
			set.Publish = map[string]render.Published{}
		}
		set.Publish[id] = render.Published{Text: p["text"].text, Parts: p["parts"].texts()}
		if err := set.Publish[id].Check(set.sample(it["adopt"].keys)); err != nil && !bad(p) && !bad(it["generate"].object()) {
			l.failAll(fmt.Sprintf("%s.%s", val.key, id), err)
		}
	}
}

// sample returns a version like those of the set, with other bytes. It has no parts if
// only the outside system determines them.
func (s RotatedSet) sample(adopted []string) (v versions.Version) {
	if s.HTTP != nil || s.Exec != nil {
		return v
	}
	names := append(s.Generate.PartNames(), adopted...)
	_, server := s.Server()
	switch {
	case server != nil:
		names = append(names, "username")
	case s.APIKeys != nil:
		names = append(names, "login", "apiKey")
	default:
		_, adopted, others := s.cloud()
		names = slices.Concat(names, adopted, others)
	}
	if len(names) == 0 { // reported already
		return v
	}
	v.Parts = map[string]secret.Value{}
	for _, name := range names {
		v.Parts[name] = secret.New(bytes.Repeat([]byte("x"), longPart))
	}
	return v
}

// longPart is the length in bytes of a sample part. It is long enough for a template to
// take any of the bytes.
const longPart = 4 << 10
