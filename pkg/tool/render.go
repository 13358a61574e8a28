package tool

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/internal/joined"
	"github.com/secretsync/syncer/internal/output"
	"github.com/secretsync/syncer/pkg/sinks"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/targets/records"
	"github.com/secretsync/syncer/pkg/workers"
)

// Render writes the file of one group, byte for byte. With the folder out, it writes the
// files of all groups below it. Without both, it writes the Secrets of the manifest with
// their data. On any error it writes nothing.
func (t *Tool) Render(ctx context.Context, group, out string) error {
	switch {
	case t.Values == "-" && slices.Contains(t.Manifests, "-"):
		return errStdinTwice
	case group != "" && out != "":
		return errors.New("--group prints one file, and --out writes all; use one of the two")
	case group != "" || out != "":
		return t.renderGroups(ctx, group, out)
	case len(t.Manifests) > 0:
		return t.renderSecrets(ctx)
	}
	return errors.New("name one group with --group, a folder for all with --out, or a manifest of Secrets with -f")
}

var errStdinTwice = errors.New("-f and --values cannot both be standard input; name a file for one of the two")

// renderGroups writes one group to the output, or all groups below a folder.
func (t *Tool) renderGroups(ctx context.Context, group, out string) error {
	cfg, templates, err := t.loadGroups()
	if err != nil {
		return err
	}
	ts := cfg.Targets
	if len(ts) == 0 { // the destination is not files
		return errors.New("there is no group to render; name a manifest of Secrets with -f")
	}
	if group != "" {
		if ts, err = onlyGroup(cfg, group); err != nil {
			return err
		}
	}
	o, err := t.offline(templates)
	if err != nil {
		return err
	}
	all, err := o.sync(ctx, o.expand(ts), folder(out))
	switch {
	case err != nil:
		return err
	case out != "":
		if err := writeAll(ctx, out, all); err != nil || !t.Output.ForPrograms() {
			return err
		}
		return t.printRendered(out, all, false)
	case t.Output.ForPrograms():
		return t.printRendered(t.Sources.SecretsDir, all, true)
	}
	whole, ok := all[0].changes.Parts[sinks.WholeFile]
	if !ok {
		return fmt.Errorf("%s is a folder of files; write it with --out, or print it with --output json", all[0].target.Key)
	}
	_, err = t.Out.Write(whole.Bytes())
	return err
}

func onlyGroup(cfg *config.Config, name string) ([]*targets.Target, error) {
	for _, t := range cfg.Targets {
		if t.Group == name || string(t.Key) == name {
			return []*targets.Target{t}, nil
		}
	}
	return nil, fmt.Errorf("there is no group %q; there are %s", name, targetNames(cfg))
}

// folder is the sink of the folder out, or nil if the folder does not exist yet.
func folder(out string) workers.Sink {
	if _, err := os.Stat(out); out == "" || err != nil {
		return nil
	}
	return sinks.NewFiles(out, nil)
}

// writeAll writes the changes below the folder out.
func writeAll(ctx context.Context, out string, all []made) error {
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	sink := sinks.NewFiles(out, nil)
	var errs []error
	for _, m := range all {
		if !m.changes.Empty() {
			_, err := sink.Apply(ctx, records.Record{Spec: m.target}, m.changes)
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// renderSecrets prints all Secrets of the manifest or none.
func (t *Tool) renderSecrets(ctx context.Context) error {
	secrets, templates, err := t.secrets()
	if err != nil {
		return err
	}
	o, err := t.offline(templates)
	if err != nil {
		return err
	}
	var ts []*targets.Target
	var owners []int // for each of ts, the index in secrets
	for i, s := range secrets {
		if s.target == nil {
			continue
		}
		named := *s.target
		named.Key = targets.Key(s.String()) // it names the source
		expanded := o.expand([]*targets.Target{&named})[0]
		for _, w := range expanded.Secret.LeftOut {
			t.line("warning", config.Problem{Key: s.Place(), Message: w})
		}
		ts, owners = append(ts, expanded), append(owners, i)
	}
	all, err := o.sync(ctx, ts, nil)
	if err != nil {
		return err
	}
	data := make([]map[string][]byte, len(secrets))
	for i, m := range all {
		data[owners[i]] = map[string][]byte{}
		for key, part := range m.changes.Parts {
			data[owners[i]][key] = part.Bytes()
		}
	}
	return t.printSecrets(secrets, data)
}

// printSecrets prints each Secret with its data as a YAML document. With JSON it prints
// all as one List.
func (t *Tool) printSecrets(secrets []readSecret, data []map[string][]byte) error {
	var documents []string
	var errs []error
	for i, s := range secrets {
		document, err := s.WithData(data[i])
		for _, e := range joined.Errors(err) {
			errs = append(errs, problem(s.Place(), targets.Fault{Place: "data", Why: e.Error()}))
		}
		documents = append(documents, string(document))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if t.Output == output.JSON {
		return t.printList(documents)
	}
	_, err := t.Out.Write([]byte(strings.Join(documents, "---\n")))
	return err
}
