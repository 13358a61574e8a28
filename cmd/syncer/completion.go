package main

import (
	"context"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/internal/output"
	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/conjurd/home"
	"github.com/secretsync/syncer/pkg/tool"
)

// completer returns the words for one place of a command line.
type completer func(cmd *cobra.Command, args []string) []string

// words is a completer with fixed words.
func words(all ...string) completer {
	return func(*cobra.Command, []string) []string { return all }
}

// complete is a completer in cobra's form. Files are not among its words.
func (c completer) complete(cmd *cobra.Command, args []string, begun string) (found []cobra.Completion, _ cobra.ShellCompDirective) {
	for _, word := range c(cmd, args) {
		if strings.HasPrefix(word, begun) {
			found = append(found, word)
		}
	}
	return found, cobra.ShellCompDirectiveNoFileComp
}

// ofFlags are the words of the flags that are alike in all commands.
var ofFlags = map[string]completer{
	"output":     words(string(output.Text), string(output.YAML), string(output.JSON)),
	"log-format": words("text", "json"),
	"on-change":  words("restart", "signal:SIGHUP", "none"),
	"ecdsa":      words("P-256", "P-384", "P-521"),
	"node":       nodesInConjur,
}

// fileFlags are the flags that name a file, and folderFlags those that name a folder.
var (
	fileFlags   = map[string]bool{"annotations": true, "audit": true, "backup": true, "config": true, "file": true, "inject": true, "kubeconfig": true, "policy": true, "termination-log": true, "tls-cert": true, "tls-key": true, "token-file": true, "values": true}
	folderFlags = map[string]bool{"dir": true, "out": true, "secrets-dir": true, "status-dir": true, "templates-dir": true}
)

// addCompletion makes a shell offer the words of a command's flags and arguments. It offers
// files only where a file can stand.
func addCompletion(cmd *cobra.Command) {
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		switch _, has := cmd.GetFlagCompletionFunc(f.Name); {
		case has || fileFlags[f.Name]:
		case folderFlags[f.Name]:
			_ = cmd.MarkFlagDirname(f.Name)
		default:
			_ = cmd.RegisterFlagCompletionFunc(f.Name, completer(ofFlags[f.Name]).orNone)
		}
	})
	if cmd.ValidArgsFunction == nil && len(cmd.ValidArgs) == 0 {
		cmd.ValidArgsFunction = cobra.NoFileCompletions
	}
}

// orNone is complete, also for the nil completer, which has no words.
func (c completer) orNone(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if c == nil {
		c = words()
	}
	return c.complete(cmd, args, begun)
}

// first is a completer of the first argument only.
func (c completer) first(cmd *cobra.Command, args []string) []string {
	if len(args) > 0 {
		return nil
	}
	return c(cmd, args)
}

// groupsOf are the groups of a configuration.
func groupsOf(t *tool.Tool) completer {
	return func(*cobra.Command, []string) []string { groups, _ := t.Names(); return groups }
}

// secretsOf are the Secrets of a configuration or a manifest.
func secretsOf(t *tool.Tool) completer {
	return func(*cobra.Command, []string) []string { _, secrets := t.Names(); return secrets }
}

// targetsOf are both.
func targetsOf(t *tool.Tool) completer {
	return func(*cobra.Command, []string) []string {
		groups, secrets := t.Names()
		return append(groups, secrets...)
	}
}

// setsInFile are the sets of the configuration file that a flag or the environment names.
func setsInFile(cmd *cobra.Command, _ []string) (sets []string) {
	file := os.Getenv(config.ConfigFileVariable)
	if f := cmd.Flags().Lookup("config"); f != nil {
		file = f.Value.String()
	}
	if file == "" {
		return nil
	}
	c, _, _ := config.LoadRotation(config.Sources{ConfigFile: config.ReadFile(file), Getenv: os.Getenv, Assume: config.Assumptions{Connection: true, Files: true}})
	for _, set := range c.Sets {
		sets = append(sets, set.Set)
	}
	return sets
}

// nodesInConjur are the nodes with node-specific variables in the Conjur that the
// environment names. A server that does not answer soon has none.
func nodesInConjur(cmd *cobra.Command, _ []string) (nodes []string) {
	if os.Getenv("CONJUR_APPLIANCE_URL") == "" {
		return nil
	}
	base := ""
	if f := cmd.Flags().Lookup("base"); f != nil {
		base = f.Value.String()
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), 2*time.Second)
	defer cancel()
	seen := map[string]bool{}
	_ = withConjur(func(client *conjur.Client) error {
		all, err := tool.Overrides(ctx, client, base)
		for _, o := range all {
			if !seen[o.Node] {
				seen[o.Node], nodes = true, append(nodes, o.Node)
			}
		}
		return err
	})
	return nodes
}

// loginsOf are the identities of conjurd whose API keys are in its folder.
func loginsOf(cmd *cobra.Command, _ []string) []string {
	return home.Logins(cmd.Flags().Lookup("dir").Value.String())
}
