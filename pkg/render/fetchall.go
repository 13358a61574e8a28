package render

import (
	"errors"
	"fmt"

	"github.com/secretsync/syncer/pkg/targets"
)

// allAlias represents the aliases of all variables in the check of a template, as
// with the Secrets Provider.
const allAlias = "*"

// checkAll reports whether a format can hold all variables. Their aliases are their
// ids.
func checkAll(format targets.Format) error {
	rule, ok := aliasRule(format)
	if !ok {
		return nil // another check reports it
	}
	if fault := rule("a/b"); fault != "" {
		return fmt.Errorf("alias \"*\" does not suit format %s: all variables have their ids for aliases, such as \"app/db/password\", but %s; use format yaml, json, java-properties or template, or list the variables", format, fault)
	}
	return nil
}

// certainOfAll returns err if it occurs for every set of variables. Otherwise it
// returns nil.
func certainOfAll(err error) error {
	var limit *limitError
	var alias unknownAlias
	var rule *ruleError
	var function *functionError
	switch {
	case errors.As(err, &alias):
		return fmt.Errorf("%w; with \"*\" an alias may be missing, so give this one a separate entry", err)
	case errors.As(err, &limit), errors.As(err, &function) && function.always:
		return err
	case errors.As(err, &rule):
		switch rule.kind {
		case undefined, wrongNumber, wrongLiteral:
			return err
		}
	}
	return nil
}

// CheckAlias returns nil if the format can hold an entry with this alias. The error
// names neither the format nor the alias.
func CheckAlias(format targets.Format, alias string) error {
	rule, ok := aliasRule(format)
	if !ok {
		return fmt.Errorf("unknown format; use one of %s", formatNames())
	}
	if fault := rule(alias); fault != "" {
		return errors.New(fault)
	}
	return nil
}
