package tool

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/internal/joined"
	"github.com/secretsync/syncer/pkg/tool/manifest"
	"github.com/secretsync/syncer/pkg/tool/secretsprovider"
)

// readManifest reads the manifest. If it is invalid, the error is a *config.InvalidError.
func (t *Tool) readManifest() (*manifest.Manifest, error) {
	paths, skipped, err := manifestFiles(t.Manifests)
	if err != nil {
		return nil, err
	}
	texts, problems := make([][]byte, len(paths)), make([][]config.Problem, len(paths))
	add := func(i int, err error) {
		problems[i] = append(problems[i], config.Problem{Key: inputName(paths[i]), Message: err.Error()})
	}
	for i, path := range paths {
		text, err := ReadInput(path, t.In)
		if errors.Is(err, context.Canceled) {
			return nil, err // the user ended it; the manifest may be valid
		}
		if at, ok := errors.AsType[*fs.PathError](err); ok {
			err = at.Err // the problem names the file
		}
		if texts[i] = text; err != nil {
			texts[i] = nil
			add(i, fmt.Errorf("the manifest cannot be read: %w", err))
		}
	}
	m, err := manifest.Parse(texts...)
	for _, e := range joined.Errors(err) {
		if at, ok := errors.AsType[*manifest.Error](e); ok {
			if looksLikeTemplate(texts[at.Text]) {
				e = fmt.Errorf("%w; it looks like a template of a Helm chart: render it with helm template first", e)
			}
			add(at.Text, e)
		}
	}
	if all := slices.Concat(problems...); len(all) > 0 {
		return nil, &config.InvalidError{Problems: all}
	}
	m.Skipped = skipped
	if len(paths) > 1 {
		for _, s := range m.Secrets {
			s.File = inputName(paths[s.Text])
		}
		for _, w := range m.Workloads {
			w.File = inputName(paths[w.Text])
		}
	}
	return m, nil
}

func looksLikeTemplate(text []byte) bool { return bytes.Contains(text, []byte("{{")) }

// manifestFiles lists the files of the paths. A folder stands for all YAML files in it
// and below, in the order of their names. Of these, skipped are the templates of a chart that
// cannot be parsed.
func manifestFiles(paths []string) (files, skipped []string, err error) {
	for _, path := range paths {
		before := len(files) + len(skipped)
		if info, err := os.Stat(path); err != nil || !info.IsDir() {
			files = append(files, path)
			continue
		}
		err := filepath.WalkDir(path, func(file string, d fs.DirEntry, err error) error {
			if ext := filepath.Ext(file); err != nil || d.IsDir() || ext != ".yaml" && ext != ".yml" {
				return err
			}
			text, err := os.ReadFile(file)
			if err == nil && looksLikeTemplate(text) {
				if _, err := manifest.Parse(text); err != nil {
					skipped = append(skipped, file)
					return nil
				}
			}
			files = append(files, file)
			return nil // the caller reports an unreadable file
		})
		if err == nil && len(files)+len(skipped) == before {
			err = fmt.Errorf("%s has no file that ends in .yaml or .yml", path)
		}
		if err != nil {
			return nil, nil, err
		}
	}
	return files, skipped, nil
}

// manifestName is the name of the manifest in a problem.
func (t *Tool) manifestName() string {
	names := make([]string, len(t.Manifests))
	for i, path := range t.Manifests {
		names[i] = inputName(path)
	}
	return strings.Join(names, ", ")
}

// providers finds the providers' containers of each workload. A workload without a
// provider's annotations needs no container, if another workload has one.
func (t *Tool) providers(m *manifest.Manifest) (found []secretsprovider.Provider, problems []config.Problem) {
	var without []config.Problem
	sidecar, err := t.sidecar()
	if err != nil {
		for _, e := range joined.Errors(err) {
			problems = append(problems, config.Problem{Key: "--inject", Message: e.Error()})
		}
		return nil, problems
	}
	for _, w := range m.Workloads {
		containers, err := w.Providers(t.Container)
		injected, pod, reasons := t.injected(m, w, sidecar)
		if problems = append(problems, reasons...); injected != nil || len(reasons) > 0 {
			err = nil
		}
		if injected != nil {
			found = append(found, secretsprovider.Provider{Workload: w, Container: injected, Pod: pod, Injected: true})
		}
		for _, c := range containers {
			found = append(found, secretsprovider.Provider{Workload: w, Container: c, Pod: &w.Pod})
		}
		switch {
		case err == nil:
		case secretsprovider.Annotated(w.Annotations):
			problems = append(problems, config.Problem{Key: w.Place(), Message: err.Error() +
				"; if the chart injects Syncer, set the Pod's label " + sidecar.Label + ` to "true"; if the chart has another label, pass its values with --inject`})
		default:
			without = append(without, config.Problem{Key: w.Place(), Message: err.Error()})
		}
	}
	if len(found)+len(problems) == 0 && !slices.ContainsFunc(m.Secrets, managed) {
		problems = without
	}
	return found, problems
}

// nothing is the problem with a manifest that contains nothing for a secrets provider.
func (t *Tool) nothing() config.Problem {
	return config.Problem{Key: t.manifestName(), Message: "there is no workload with a secrets provider in it"}
}

// checkManifest checks every workload and every Secret of a manifest, and returns the
// providers with their configurations. If naming is true, a problem contains the name of
// its workload.
func (t *Tool) checkManifest(m *manifest.Manifest, connection, naming bool) ([]secretsprovider.Provider, config.Validation) {
	found, problems := t.providers(m)
	if len(found)+len(problems) == 0 && !slices.ContainsFunc(m.Secrets, managed) {
		problems = append(problems, t.nothing())
	}
	all := config.NewValidation(nil, nil)
	all.Errors = append(all.Errors, problems...)
	for _, file := range m.Skipped {
		all.Warnings = append(all.Warnings, config.Problem{Key: file, Message: "skipped, because it looks like a template of a Helm chart; render it with helm template first"})
	}
	named := map[string]bool{}
	for i, p := range found {
		cfg, v := p.Load(t.Sources, t.TemplatesNamed, connection)
		found[i].Config = cfg
		v = both(v, checkPod(found[i]))
		if naming {
			v = config.Validation{Errors: prefixed(p.Workload.Place()+": ", v.Errors), Warnings: prefixed(p.Workload.Place()+": ", v.Warnings)}
		}
		all = both(all, v)
		if cfg != nil {
			for _, def := range cfg.Kubernetes.Definitions {
				named[def.Name] = named[def.Name] || def.Configured == nil
			}
		}
	}
	secrets, v := readSecrets(m, named)
	all = both(all, v)
	all.Warnings = append(all.Warnings, kept(m, found, secrets)...)
	for _, s := range secrets {
		all.Errors = append(all.Errors, s.checkGroups(t.templates(m))...)
	}
	return found, all
}

func prefixed(prefix string, problems []config.Problem) []config.Problem {
	for i := range problems {
		problems[i].Key = prefix + problems[i].Key
	}
	return problems
}

// loadGroups reads the configuration, or the one of the manifest's workload, and finds
// its templates.
func (t *Tool) loadGroups() (*config.Config, *templates, error) {
	if len(t.Manifests) == 0 {
		cfg, err := t.load()
		return cfg, t.templates(nil), err
	}
	m, err := t.readManifest()
	if err != nil {
		return nil, nil, err
	}
	p, err := t.onlyProvider(m)
	if err != nil {
		return nil, nil, err
	}
	texts := t.templates(m)
	texts.mounted, _ = p.Container.Mounted(path.Clean(t.Sources.TemplatesDir))
	return p.Config, texts, nil
}

// onlyProvider finds the single provider in the manifest, with its configuration. It
// writes the warnings and, if the configuration is invalid, the problems.
func (t *Tool) onlyProvider(m *manifest.Manifest) (secretsprovider.Provider, error) {
	found, problems := t.providers(m)
	switch {
	case len(problems) > 0:
		return secretsprovider.Provider{}, &config.InvalidError{Problems: problems}
	case len(found) == 0:
		return secretsprovider.Provider{}, &config.InvalidError{Problems: []config.Problem{t.nothing()}}
	case len(found) > 1:
		var names []string
		for _, p := range found {
			names = append(names, p.Workload.String()+" "+p.Container.Name)
		}
		return secretsprovider.Provider{}, fmt.Errorf("there is more than one secrets provider: %s; give a manifest of one workload, and name the container by --container", strings.Join(names, ", "))
	}
	var v config.Validation
	found[0].Config, v = found[0].Load(t.Sources, t.TemplatesNamed, false)
	return found[0], t.write(v)
}

// login describes how the process that fills a target logs in to Conjur.
type login struct {
	Authenticator config.AuthnType `json:"authenticator,omitempty"` // empty: unknown
	Proof         string           `json:"proof,omitempty"`         // how the identity is proven
	Missing       []config.Problem `json:"missing"`
}

// loginOf returns how a process with the configuration logs in, as one of its identities.
// It returns nil if the configuration has no settings for Conjur. p is the provider in
// the manifest, or nil.
func (t *Tool) loginOf(cfg *config.Config, as config.Conjur, p *secretsprovider.Provider) *login {
	if cfg == nil || as.AuthnType == "" && as.ApplianceURL == "" && as.Account == "" {
		return nil
	}
	l := &login{Authenticator: as.AuthnType, Proof: as.AuthnType.Proof(), Missing: []config.Problem{}}
	var complete config.Validation // the problems without assumptions
	if p == nil {
		src := t.Sources
		src.Assume = config.Assumptions{Namespace: true, Files: true}
		_, complete = t.loadFrom(src)
	} else {
		_, complete = p.Load(t.Sources, t.TemplatesNamed, true)
	}
	l.Missing = append(l.Missing, complete.Errors...)
	if p != nil && p.Unknown(secretsprovider.AuthnURL) && cfg.Conjur.AuthnURL == as.AuthnURL {
		l.Authenticator, l.Proof = "", ""
		l.Missing = append(l.Missing, config.Problem{Key: secretsprovider.AuthnURL, Message: "the manifest has no value for it"})
	}
	return l
}

// addTo adds the login to an explanation.
func (l *login) addTo(table table) {
	if l == nil {
		return
	}
	head := "not known"
	if l.Authenticator != "" {
		head = string(l.Authenticator) + ": " + l.Proof
	}
	lines := []string{head}
	for _, p := range l.Missing {
		lines = append(lines, "missing: "+p.Error())
	}
	table.rows("login", lines)
}
