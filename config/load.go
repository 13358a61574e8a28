package config

import (
	"cmp"
	"embed"
	"io/fs"
	"reflect"
	"slices"
	"strings"

	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/targets/definitions"
)

// The folders and files of the Secrets Provider. A command that names no others uses them.
const (
	DefaultAnnotations  = "/conjur/podinfo/annotations"
	DefaultSecretsDir   = "/conjur/secrets"
	DefaultTemplatesDir = "/conjur/templates"
	DefaultStatusDir    = "/conjur/status"

	// DefaultInbox is where Conjur delivers the certificate for authn-k8s. InboxVariable
	// names another place. Programs that read only the environment use it too.
	DefaultInbox  = "/etc/conjur/ssl/client.pem"
	InboxVariable = "CONJUR_CLIENT_CERT_PATH"
)

// Sources are the inputs of Load. An empty folder means the default.
type Sources struct {
	// Annotations is a file in the Downward API's format. Without a name, and if the file
	// is missing, there are no annotations. AnnotationsNamed reports that the user named the
	// file. If not, a standalone with a configuration file ignores it.
	Annotations      File
	AnnotationsNamed bool
	// Getenv looks up an environment variable; empty means not set. A nil Getenv means no
	// variables.
	Getenv func(string) string

	// ConfigFile is a YAML file; without a name there is no file. Annotations take
	// precedence over it, and it takes precedence over environment variables.
	ConfigFile File

	SecretsDir, TemplatesDir, StatusDir string
	// Templates contains the files of TemplatesDir; nil means that it is empty.
	Templates fs.FS

	// Kubeconfig takes precedence over the setting kubernetes.kubeconfig.
	Kubeconfig string
	// Node takes precedence over MY_NODE_NAME.
	Node string

	// Assume disables some checks. The zero Assume is for the process that does the work.
	// A tool may read the configuration of another process.
	Assume Assumptions
}

// Assumptions are facts that Load accepts without a check.
type Assumptions struct {
	// Connection permits that Conjur's address, account and identity are not set.
	Connection bool
	// Namespace permits that the Pod's namespace is not set.
	Namespace bool
	// Files skips the check of the files with certificates, tokens and keys.
	Files bool
	// Node permits an unknown node; it is AnyNode.
	Node bool
}

// loader is one run of Load.
type loader struct {
	report
	values
	src    Sources
	before *Config // the configuration in effect, or nil
	ofNode bool    // a group has node-specific secrets
}

func newLoader(src Sources) *loader {
	src.SecretsDir = cmp.Or(src.SecretsDir, DefaultSecretsDir)
	src.TemplatesDir = cmp.Or(src.TemplatesDir, DefaultTemplatesDir)
	src.StatusDir = cmp.Or(src.StatusDir, DefaultStatusDir)
	if src.Getenv == nil {
		src.Getenv = func(string) string { return "" }
	}
	if src.Templates == nil {
		src.Templates = embed.FS{}
	}
	return &loader{src: src, values: newValues()}
}

// Load reads and checks everything. The error is an *InvalidError with all problems
// together. The warnings are valid with and without an error. Load makes no network
// requests. It may be called again at any time to detect changes.
//
// If each problem concerns a single target, Load returns a Config and the error. In this
// Config, these targets have Faults, or they will fail when they are synced.
func Load(src Sources) (cfg *Config, warnings []Problem, err error) { return load(src, nil) }

func load(src Sources, before *Config) (cfg *Config, warnings []Problem, err error) {
	l := newLoader(src)
	l.before = before
	if !l.addSources() {
		return nil, l.warnings, &InvalidError{l.problems}
	}
	l.proxies()
	cfg = l.config()
	switch {
	case len(l.problems) == 0:
		return cfg, l.warnings, nil
	case l.isolated():
		return cfg, l.warnings, &InvalidError{l.problems}
	}
	return nil, l.warnings, &InvalidError{l.problems}
}

// addSources reads the sources in the order of their precedence. The first one that has a
// setting wins: annotations, the file, the environment. It returns false if the file cannot
// be read.
func (l *loader) addSources() bool {
	if l.src.IgnoresAnnotations() {
		l.ignoreAnnotations()
	} else {
		l.addAnnotations(readAnnotations(l.src.Annotations, &l.report), &l.report)
	}
	l.addSlips()
	if !l.addFile(l.src.ConfigFile, &l.report) {
		return false
	}
	l.addEnvironment(l.src.Getenv, &l.report)
	return true
}

// config assembles the parts. It leaves invalid parts zero.
func (l *loader) config() *Config {
	cfg := &Config{Folders: Folders{l.src.SecretsDir, l.src.TemplatesDir, l.src.StatusDir}}
	fill(fileSettings(), l.process, reflect.ValueOf(cfg))
	l.checkDestination(cfg)
	l.refresh(cfg)
	l.retry(cfg)
	l.log(cfg)
	l.signal(cfg)
	l.inPlace(cfg)
	l.server(cfg)
	l.conjur(cfg)
	l.kubernetes(cfg)
	cfg.Identities = l.allIdentities(cfg)
	l.loadRotation(cfg)
	l.warnOfIdle(cfg.Identities)
	if cfg.Destination == DestinationKubernetes {
		l.ignoreGroups()
	} else {
		l.node(cfg)
		cfg.Targets = l.targets(cfg)
	}
	cfg.said = values{process: item{}, groups: l.groups}
	for _, s := range within("identities", "kubernetes.secrets", "rotation.every", "rotation.identity", "rotation.sets") {
		cfg.said.process[s.name] = l.process[s.name]
	}
	if cfg.misspellings = l.misspellings; l.before != nil {
		l.keep(cfg)
	}
	return cfg
}

// LoadConnection reads the connection settings of Conjur only from the environment, for
// commands that need nothing else. It reports problems as Load does.
func LoadConnection(getenv func(string) string) (Conjur, []Problem, error) {
	l := newLoader(Sources{Getenv: getenv})
	l.addEnvironment(getenv, &l.report)
	l.proxies()
	cfg := &Config{}
	fill(fileSettings(), l.process, reflect.ValueOf(cfg))
	l.conjur(cfg)
	if len(l.problems) > 0 {
		return Conjur{}, l.warnings, &InvalidError{l.problems}
	}
	return cfg.Conjur, l.warnings, nil
}

// Reload is Load for a process that runs with the configuration before. A target with a
// problem keeps its settings from before. An unknown annotation that resembles a setting
// is also a problem, unless it existed before: a typing error must not change the
// delivered secrets.
func Reload(src Sources, before *Config) (cfg *Config, warnings []Problem, err error) {
	return load(src, before)
}

// misspelling is an unknown annotation that resembles a setting.
type misspelling struct {
	key, message string
	group        *string // the group of the setting; nil for a process setting
}

// addSlips reports the misspellings. New ones in a running process are problems.
func (l *loader) addSlips() {
	for _, s := range l.misspellings {
		same := func(other misspelling) bool { return other.key == s.key }
		switch {
		case l.before == nil || slices.ContainsFunc(l.before.misspellings, same):
			l.warn(s.key, "%s", s.message)
		case s.group == nil:
			l.fail(s.key, "%s", s.message)
		default:
			l.concerning(func() { l.fail(s.key, "%s", s.message) }, targets.FileKey(*s.group))
		}
	}
}

// keep gives targets with problems their previous settings.
func (l *loader) keep(cfg *Config) {
	name := func(t *targets.Target) targets.Key { return t.Key }
	faulty := func(t *targets.Target) bool { return len(t.Faults) > 0 }
	cfg.Targets = kept(l.before.Targets, cfg.Targets, name, faulty)
	for _, t := range l.before.Targets { // a misspelling may hide a whole group
		if len(l.takeFaults(t.Key)) > 0 {
			cfg.Targets = append(cfg.Targets, t)
		}
	}
	slices.SortFunc(cfg.Targets, func(a, b *targets.Target) int { return strings.Compare(a.Group, b.Group) })
	well := slices.DeleteFunc(slices.Clone(cfg.Targets), func(t *targets.Target) bool { return faulty(t) || t.File.Path == "" })
	l.fatal = l.fatal || len(targets.PathConflicts(well)) > 0

	cfg.Kubernetes.Definitions = kept(l.before.Kubernetes.Definitions, cfg.Kubernetes.Definitions,
		func(def definitions.SecretDefinition) targets.Key {
			return targets.KubeSecretKey(def.Namespace, def.Name)
		},
		func(def definitions.SecretDefinition) bool { return def.Configured != nil && faulty(def.Configured) })
}

// kept returns the items of after, but replaces each faulty one with its item in before.
// It omits the item if before has none. It does not restore an item that was already
// faulty in before.
func kept[T any](before, after []T, name func(T) targets.Key, faulty func(T) bool) (all []T) {
	for _, item := range after {
		was := slices.IndexFunc(before, func(other T) bool { return name(other) == name(item) })
		switch {
		case !faulty(item) || was >= 0 && faulty(before[was]):
			all = append(all, item)
		case was >= 0:
			all = append(all, before[was])
		}
	}
	return all
}
