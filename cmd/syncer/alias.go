package main

import "path/filepath"

// aliases are the command lines that other names of the binary stand for: those
// of the Secrets Provider's scripts, so that a hook or probe which names one
// finds it in an image without a shell too.
func aliases(name string) []string {
	switch name {
	case "conjur-secrets-provided.sh":
		return []string{"wait"}
	case "conjur-secrets-unchanged.sh":
		return []string{"probe", "unchanged"}
	}
	return nil
}

// commandLine is the command line without the binary's name, or, when that is
// an alias, the one it stands for. An alias takes the status folder, as the
// scripts do.
func commandLine(args []string) []string {
	if len(args) == 0 {
		return nil
	}
	alias, rest := aliases(filepath.Base(args[0])), args[1:]
	switch {
	case alias == nil:
		return rest
	case len(rest) == 0:
		return alias
	}
	return append(alias, append([]string{"--status-dir"}, rest...)...)
}
