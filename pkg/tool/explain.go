package tool

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/internal/terminal"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/tool/secretsprovider"
)

// Explain writes all settings of a target of the configuration, or of a Secret of the
// manifest.
func (t *Tool) Explain(name string) error {
	if len(t.Manifests) > 0 {
		return t.explainOfManifest(name)
	}
	cfg, err := t.load()
	if err != nil {
		return err
	}
	return t.explainOf(cfg, nil, name)
}

// explainOf explains a target of the configuration. If p is not nil, the configuration
// belongs to p.
func (t *Tool) explainOf(cfg *config.Config, p *secretsprovider.Provider, name string) error {
	if secret, ok := definedSecret(cfg, name); ok {
		return t.printSecret(t.newSecretExplanation(cfg, p, secret))
	}
	file, ok := config.Explain(cfg, name)
	if !ok {
		return fmt.Errorf("there is no target %q; there are %s", name, targetNames(cfg))
	}
	e := fileExplanation{Explanation: file, Login: t.loginOf(cfg, cfg.Conjur, p)}
	if p != nil {
		e.Environment = variablesFrom(*p, file.Group)
	}
	if t.Values != "" {
		ids, err := t.variablesIn()
		if err != nil {
			return err
		}
		e.Read = readOf(file.Entries, ids)
	}
	if t.Output.ForPrograms() {
		return t.print(e)
	}
	return t.printFile(e)
}

// fileExplanation contains all settings of one file.
type fileExplanation struct {
	config.Explanation
	// Read is the variable that each entry reads, by alias, if a file of values is given.
	Read map[string]string `json:"read,omitempty"`
	// Environment is the variables that the kubelet reads from the file, by container.
	Environment []string `json:"environment,omitempty"`
	Login       *login   `json:"login,omitempty"`
}

func (t *Tool) printFile(e fileExplanation) error {
	table := t.table()
	table.row("target", string(e.Key))
	table.row("path", e.Path)
	table.row("mode", e.Mode)
	table.row("format", string(e.Format))
	table.rows("dotenv readers", e.DotenvReaders)
	if e.Template != "" {
		table.row("template", e.Template)
	}
	table.rows("entries", entryLines(e.Entries))
	for i, alias := range slices.Sorted(maps.Keys(e.Read)) {
		table.row([]string{"reads", ""}[min(i, 1)], alias+": "+e.Read[alias])
	}
	table.rows("variables", e.Variables)
	table.rows("environment", e.Environment)
	table.rows("triggers", triggerLines(e.Triggers))
	e.Login.addTo(table)
	return table.Flush()
}

func entryLines(entries []targets.Entry) (lines []string) {
	for _, e := range entries {
		id := e.Variable
		if e.Override != "" {
			id = e.Override + ", else " + id
		}
		lines = append(lines, fmt.Sprintf("%s: %s (%s)", e.Alias, id, e.ContentType))
	}
	return lines
}

func triggerLines(triggers []config.Trigger) (lines []string) {
	for _, t := range triggers {
		lines = append(lines, t.Kind+": "+t.When)
	}
	return lines
}

// table has rows with a head and a text.
type table struct{ *tabwriter.Writer }

func (t *Tool) table() table { return table{terminal.Columns(t.Out)} }

func (t table) row(head, text string) { fmt.Fprintln(t, head+"\t"+text) }

// rows writes the head only before the first line.
func (t table) rows(head string, lines []string) {
	for _, line := range lines {
		t.row(head, line)
		head = ""
	}
}

// targetNames lists the targets of the configuration, for an error.
func targetNames(cfg *config.Config) string {
	var names []string
	for _, t := range cfg.Targets {
		names = append(names, t.Group)
	}
	for _, def := range cfg.Kubernetes.Definitions {
		names = append(names, def.Namespace+"/"+def.Name)
	}
	if len(names) == 0 && cfg.Destination == config.DestinationKubernetes {
		return "none in the configuration, which chooses Secrets by their label; name a manifest that has them by -f"
	}
	return cmp.Or(strings.Join(names, ", "), "none")
}
