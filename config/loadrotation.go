package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/secretsync/syncer/pkg/rotation/generate"
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
	cfg.Mode, cfg.Kubernetes = "", Kubernetes{}
	l.rotate(cfg)
	if len(cfg.Rotation.Sets) == 0 && len(l.problems) == 0 {
		l.fail(src.ConfigFile.Name, "the file has no %s; list the sets to rotate", "rotation.sets")
	}
	if len(l.problems) > 0 {
		return Rotation{}, l.warnings, &InvalidError{l.problems}
	}
	return cfg.Rotation, l.warnings, nil
}

// rotate checks and completes the rotation settings.
func (l *loader) rotate(cfg *Config) {
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
	cfg.Rotation.Conjur = l.rotatesAs(cfg)
	if own := &cfg.Rotation.Owner; *own == "" {
		if *own = cfg.Rotation.Conjur.Login; cfg.Kubernetes.LeaderElection.Lease != "" {
			*own = strings.TrimSpace(*own + " " + cfg.Kubernetes.LeaderElection.Namespace + "/" + cfg.Kubernetes.LeaderElection.Lease)
		}
	}
	sets, _ := find(fileSettings(), "rotation.sets")
	for _, it := range list.items {
		cfg.Rotation.Sets = append(cfg.Rotation.Sets, l.rotated(it, sets.items))
	}
	l.checkSeparate(list.items, cfg.Rotation.Sets)
}

// rotatesAs returns the connection settings for changes of sets.
func (l *loader) rotatesAs(cfg *Config) Conjur {
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

// rotated reads one set.
func (l *loader) rotated(it item, table []setting) RotatedSet {
	var set RotatedSet
	fill(table, it, reflect.ValueOf(&set))
	l.actuator(it, &set)
	l.timed(it, &set)
	l.generated(it, &set)
	l.schedule(it, &set)
	l.kept(it, &set)
	l.confirmed(it, &set)
	l.published(it, &set)
	for i, part := range it["adopt"].keys {
		if set.Adopt == nil {
			set.Adopt = map[string]string{}
		}
		set.Adopt[part] = it["adopt"].items[i]["variable"].text
	}
	l.clouded(it, set)
	return set
}

// generated reads the parts of a version.
func (l *loader) generated(it item, set *RotatedSet) {
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
	switch {
	case set.PostgreSQL != nil && set.Generate.Password == nil && !bad(g):
		l.fail(val.key, "users of a database have passwords; generate a password, or remove this setting")
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

// schedule reads when to create a version.
func (l *loader) schedule(it item, set *RotatedSet) {
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

// kept reads how long an old version stays, and the other settings that depend on the
// kind of the set.
func (l *loader) kept(it item, set *RotatedSet) {
	name, other, why := "keep", "grace", "keys have keep"
	set.Keep = defaultKeep
	if set.Outside() {
		name, other, why = "grace", "keep", "logins have grace"
		set.Keep = defaultGrace
	}
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

// confirmed checks how consumers confirm a version. If no confirmation is configured, the
// rotation waits for a time.
func (l *loader) confirmed(it item, set *RotatedSet) {
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
