package tool

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/internal/output"
	"github.com/secretsync/syncer/internal/safefile"
	"github.com/secretsync/syncer/internal/terminal"
	"github.com/secretsync/syncer/pkg/targets/definitions"
	"github.com/secretsync/syncer/pkg/tool/manifest"
	"github.com/secretsync/syncer/pkg/tool/secretsprovider"
)

// migration is what Migrate prints as JSON.
type migration struct {
	Manifest string           `json:"manifest,omitempty"` // empty if there are errors, or files were changed
	Changed  []string         `json:"changed,omitempty"`  // the changed files
	Notes    []config.Problem `json:"notes"`
	config.Validation

	texts [][]byte // of the manifest's files
}

// Migrate writes the manifest with image instead of the provider's image, and notes on
// the differences. If inPlace is true, it changes the files of the manifest instead.
func (t *Tool) Migrate(image string, inPlace bool) error {
	m, err := t.readManifest()
	if err != nil {
		return err
	}
	var result migration
	err = terminal.During(t.Err, fmt.Sprintf("Checking %d workloads", len(m.Workloads)), func() (err error) {
		result, err = t.migrate(m, image)
		return err
	})
	if err == nil && inPlace && len(result.Errors) == 0 {
		result.Changed, err = t.replaceManifests(result.texts)
		result.Manifest = ""
	}
	switch {
	case err != nil:
		return err
	case t.Output == output.JSON:
		return t.printFindings(result, result.Errors)
	}
	if err := t.write(result.Validation); err != nil {
		return err
	}
	for _, n := range result.Notes {
		t.line("note", n)
	}
	if inPlace {
		_, err = fmt.Fprintf(t.Out, "%d of %d files changed\n%s", len(result.Changed), len(result.texts), strings.Join(append(result.Changed, ""), "\n"))
		return err
	}
	_, err = fmt.Fprint(t.Out, result.Manifest)
	return err
}

// replaceManifests writes the texts to the files of the manifest, and returns the files
// that it changed. It follows a symlink, and keeps the mode of a file.
func (t *Tool) replaceManifests(texts [][]byte) (changed []string, err error) {
	paths, _, err := manifestFiles(t.Manifests)
	if err != nil {
		return nil, err
	}
	if slices.Contains(paths, "-") {
		return nil, errors.New("--in-place needs files; standard input cannot be changed")
	}
	for i, path := range paths {
		before, err := ReadInput(path, t.In)
		if err != nil {
			return changed, err
		}
		if bytes.Equal(before, texts[i]) {
			continue
		}
		target, err := filepath.EvalSymlinks(path)
		if err != nil {
			return changed, err
		}
		info, err := os.Stat(target)
		if err != nil {
			return changed, err
		}
		if err := errors.Join(safefile.Replace(target, texts[i]), os.Chmod(target, info.Mode().Perm())); err != nil {
			return changed, fmt.Errorf("%d of %d files were changed before: %w", len(changed), len(paths), err)
		}
		changed = append(changed, path)
	}
	return changed, nil
}

// printFindings prints v, which contains these errors, for programs.
func (t *Tool) printFindings(v any, errs []config.Problem) error {
	if err := t.print(v); err != nil {
		return err
	}
	if len(errs) > 0 {
		return ErrReported
	}
	return nil
}

// migrate checks everything and, if everything is valid, replaces the images.
func (t *Tool) migrate(m *manifest.Manifest, image string) (migration, error) {
	found, checked := t.checkManifest(m, false, true)
	result := migration{Notes: []config.Problem{}, Validation: checked}
	var containers []*manifest.Container
	var hand []config.Problem // manual work in the containers
	for _, p := range found {
		if p.Injected {
			continue // no image to replace
		}
		prefix := p.Workload.Place() + ": "
		notes, byHand := p.Notes()
		for _, u := range p.Unrunnable(image) {
			if u.Key == "command" {
				result.Errors = append(result.Errors, prefixed(prefix, []config.Problem{u})...)
				continue
			}
			u.Message = "to be done by hand: " + u.Message
			byHand = append(byHand, u)
		}
		result.Notes, hand = append(result.Notes, prefixed(prefix, notes)...), append(hand, prefixed(prefix, byHand)...)
		containers = append(containers, p.Container)
	}
	for _, s := range m.Secrets {
		result.Notes = append(result.Notes, secretsprovider.NotesOnSecret(s)...)
	}
	result.Notes = append(result.Notes, needed(m, found)...)
	must, better := secretsprovider.NotesOnRights(m, found)
	result.Notes = append(result.Notes, better...)
	result.Warnings = slices.Concat([]config.Problem{}, must, hand, unchecked(found), result.Warnings)
	if len(result.Errors) > 0 {
		return result, nil
	}
	var err error
	if result.texts, err = m.WithImage(image, containers...); err != nil {
		return result, err
	}
	if t.Inject != "" {
		if result.texts, err = t.inject(result.texts); err != nil {
			return result, err
		}
	}
	result.Manifest = string(manifest.Join(result.texts))
	result.Errors = append(result.Errors, t.former(result.texts)...)
	if len(result.Errors) > 0 {
		result.Manifest = ""
	}
	return result, nil
}

// former returns a problem for each place that still has the Secrets Provider's image. A
// user would otherwise believe that the whole repository was migrated.
func (t *Tool) former(texts [][]byte) (problems []config.Problem) {
	paths, _, err := manifestFiles(t.Manifests)
	if err != nil {
		return []config.Problem{{Key: t.manifestName(), Message: err.Error()}}
	}
	m, err := manifest.Parse(texts...)
	if err != nil {
		return []config.Problem{{Key: t.manifestName(), Message: err.Error()}}
	}
	for _, place := range m.Former() {
		at, _ := errors.AsType[*manifest.Error](place)
		problems = append(problems, config.Problem{Key: inputName(paths[at.Text]), Message: place.Error()})
	}
	return problems
}

// unchecked warns of connection settings in a ConfigMap or a Secret that is not in the
// manifest.
func unchecked(found []secretsprovider.Provider) (warnings []config.Problem) {
	for _, p := range found {
		if p.Injected {
			continue // the chart knows them
		}
		var names []string
		for _, name := range []string{"CONJUR_APPLIANCE_URL", "CONJUR_AUTHN_URL", "CONJUR_ACCOUNT"} {
			if p.Unknown(name) {
				names = append(names, name)
			}
		}
		if len(names) > 0 {
			warnings = append(warnings, config.Problem{Key: p.Workload.Place() + ": " + strings.Join(names, ", "),
				Message: "not checked, as the manifest has no value; add the ConfigMap or the Secret that has it"})
		}
	}
	return warnings
}

// kept warns of containers that keep the data of a Secret from their start, although a
// provider renews the Secret and nothing restarts them.
func kept(m *manifest.Manifest, providers []secretsprovider.Provider, secrets []readSecret) (warnings []config.Problem) {
	renewed := renewedSecrets(providers, secrets)
	for _, w := range m.Workloads {
		if _, err := definitions.ParseWorkloads(strings.ToLower(w.String())); err != nil {
			continue // of a kind that runs again
		}
		for _, c := range w.Containers {
			for _, name := range slices.Sorted(maps.Keys(c.Kept)) {
				restarted, is := renewed[name]
				if !is || slices.Contains(restarted, strings.ToLower(w.String())) {
					continue
				}
				warnings = append(warnings, config.Problem{
					Key: w.String() + ": container " + c.Name,
					Message: fmt.Sprintf("%s is from the Secret %q, and keeps the old value when that changes; mount the Secret as a volume without subPath, or have standalone restart the workload, by conjur.org/restart-workloads: %s on the Secret",
						c.Kept[name], name, strings.ToLower(w.String())),
				})
			}
		}
	}
	return warnings
}

// renewedSecrets returns the Secrets that a provider keeps fresh, each with the workloads
// to restart. The provider is in the manifest, or elsewhere and finds them by their
// label.
func renewedSecrets(providers []secretsprovider.Provider, secrets []readSecret) map[string][]string {
	renewed := map[string][]string{}
	refreshes := len(providers) == 0
	for _, p := range providers {
		if p.Config == nil || !p.Config.Refresh.Enabled || p.Config.Mode.OneShot() {
			continue
		}
		refreshes = true
		for _, def := range p.Config.Kubernetes.Definitions {
			renewed[def.Name] = nil
			if t := def.Configured; t != nil {
				renewed[def.Name] = t.Secret.Restart
			}
		}
	}
	for _, s := range secrets {
		if _, listed := renewed[s.Name]; s.target != nil && (listed || refreshes && s.Labelled) {
			renewed[s.Name] = append(renewed[s.Name], s.target.Secret.Restart...)
		}
	}
	return renewed
}

// needed notes the containers that cannot start without a data key that a provider removes
// with its variable. The Secrets Provider keeps the key.
func needed(m *manifest.Manifest, providers []secretsprovider.Provider) (notes []config.Problem) {
	removing := map[string]string{} // by the name of the Secret: who removes a key
	for _, p := range providers {
		if p.Config == nil || !p.Config.RemoveDeleted || p.Config.Destination != config.DestinationKubernetes {
			continue
		}
		who := "Syncer removes the key"
		if p.Config.Mode.OneShot() {
			who = "the next run of Syncer removes the key and fails"
		}
		for _, def := range p.Config.Kubernetes.Definitions {
			removing[def.Name] = who
		}
		for _, s := range m.Secrets {
			if s.Labelled && p.Config.Kubernetes.ByLabel() {
				removing[s.Name] = who
			}
		}
	}
	for _, w := range m.Workloads {
		for _, c := range w.Containers {
			for _, name := range slices.Sorted(maps.Keys(c.Needs)) {
				if who, is := removing[name]; is {
					notes = append(notes, config.Problem{Key: w.Place() + ": container " + c.Name, Message: fmt.Sprintf(
						"%s needs a key of the Secret %q; if the key's variable is deleted in Conjur, %s, and the container cannot start again; before, the key stayed with an empty value; optional: true lets it start", c.Needs[name], name, who)})
				}
			}
		}
	}
	return notes
}
