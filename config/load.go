package config

import (
	"cmp"
	"embed"
	"io/fs"
	"reflect"
)

// The folders and files that are used when Sources name no others, those of
// the Secrets Provider.
const (
	DefaultAnnotations  = "/conjur/podinfo/annotations"
	DefaultSecretsDir   = "/conjur/secrets"
	DefaultTemplatesDir = "/conjur/templates"
	DefaultStatusDir    = "/conjur/status"

	// DefaultInbox is where Conjur brings the certificate for authn-k8s.
	// InboxVariable names another place, also to those who see the
	// environment alone.
	DefaultInbox  = "/etc/conjur/ssl/client.pem"
	InboxVariable = "CONJUR_CLIENT_CERT_PATH"
)

// Sources is what Load reads. An empty string means the default.
type Sources struct {
	// Annotations is a file as the Downward API writes it. If there is none,
	// there are no annotations.
	Annotations File
	// Getenv looks up an environment variable; empty means not set. Without
	// it there are none.
	Getenv func(string) string

	// ConfigFile is a YAML file; without a name there is none. Annotations win
	// over it, and it wins over the other variables.
	ConfigFile File

	SecretsDir, TemplatesDir, StatusDir string
	// Templates is the content of TemplatesDir; nil: it is empty.
	Templates fs.FS

	// Kubeconfig wins over the setting kubernetes.kubeconfig.
	Kubeconfig string
	// Node wins over MY_NODE_NAME.
	Node string

	// Assume says what is not looked for. The zero Assume is for the process
	// that does the work; a tool may look at the configuration of another.
	Assume Assumptions
}

// Assumptions are what Load takes to be right though it may not be there.
type Assumptions struct {
	// Connection: Conjur's address, account and identity need not be set.
	Connection bool
	// Namespace: the Pod's namespace need not be set.
	Namespace bool
	// Files: the files with certificates, tokens and keys are not looked at.
	Files bool
	// Node: the node need not be known; it is AnyNode.
	Node bool
}

// loader is one run of Load.
type loader struct {
	report
	values
	src    Sources
	before *Config // that is in effect; nil: none is
	ofNode bool    // a group has secrets of the node's own
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

// Load reads and checks everything. The error is an *InvalidError with all
// problems at once; the warnings are good with and without one. It makes no
// network requests and may be called again at any time to see what changed.
//
// If each problem concerns a single target, there is a Config beside the error.
// These targets have Faults in it, or will fail when they are synced.
func Load(src Sources) (cfg *Config, warnings []Problem, err error) { return load(src, nil) }

func load(src Sources, before *Config) (cfg *Config, warnings []Problem, err error) {
	l := newLoader(src)
	l.before = before
	l.addAnnotations(readAnnotations(src.Annotations, &l.report), &l.report)
	l.addSlips()
	if !l.addFile(src.ConfigFile, &l.report) {
		return nil, l.warnings, &InvalidError{l.problems}
	}
	l.addEnvironment(l.src.Getenv, &l.report)
	cfg = l.config()
	switch {
	case len(l.problems) == 0:
		return cfg, l.warnings, nil
	case l.isolated():
		return cfg, l.warnings, &InvalidError{l.problems}
	}
	return nil, l.warnings, &InvalidError{l.problems}
}

// config puts the parts together; what could not be understood is left zero.
func (l *loader) config() *Config {
	cfg := &Config{Folders: Folders{l.src.SecretsDir, l.src.TemplatesDir, l.src.StatusDir}}
	fill(fileSettings(), l.process, reflect.ValueOf(cfg))
	l.checkDestination(cfg)
	l.refresh(cfg)
	l.retry(cfg)
	l.log(cfg)
	l.signal(cfg)
	l.server(cfg)
	l.conjur(cfg)
	l.kubernetes(cfg)
	cfg.Identities = l.allIdentities(cfg)
	l.rotate(cfg)
	l.warnOfIdle(cfg.Identities)
	if cfg.Destination == DestinationKubernetes {
		l.ignoreGroups()
	} else {
		l.node(cfg)
		cfg.Targets = l.targets(cfg)
	}
	if cfg.slips = l.slips; l.before != nil {
		l.keep(cfg)
	}
	return cfg
}

// LoadConnection reads from the environment alone how Conjur is reached, for
// commands that need no more. Problems are reported as by Load.
func LoadConnection(getenv func(string) string) (Conjur, []Problem, error) {
	l := newLoader(Sources{Getenv: getenv})
	l.addEnvironment(getenv, &l.report)
	cfg := &Config{}
	fill(fileSettings(), l.process, reflect.ValueOf(cfg))
	l.conjur(cfg)
	if len(l.problems) > 0 {
		return Conjur{}, l.warnings, &InvalidError{l.problems}
	}
	return cfg.Conjur, l.warnings, nil
}
