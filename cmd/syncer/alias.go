package main

import "path/filepath"

// aliases returns the command line for another name of the binary. These names are the
// scripts of the Secrets Provider. A hook or probe that names such a script also finds it
// in an image without a shell.
func aliases(name string) []string {
	switch name {
	case "conjur-secrets-provided.sh":
		return []string{"wait"}
	case "conjur-secrets-unchanged.sh":
		return []string{"probe", "unchanged"}
	}
	return nil
}

// commandLine is the command line without the binary's name. If that name is an alias, it
// is the aliased command line. An alias uses the status folder, as the scripts do.
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
