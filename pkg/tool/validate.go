package tool

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"

	"github.com/secretsync/syncer/config"
)

// Config writes the effective configuration without secrets.
func (t *Tool) Config() error {
	cfg, err := t.load()
	if err != nil {
		return err
	}
	return t.print(config.NewEffective(cfg))
}

// Validate checks the configuration, or every workload and Secret of the manifest, and
// writes all problems. If connection is true, the connection settings of Conjur are
// required. If it is false, they are required only if any of them is set. If strict is
// true, a warning is an error too.
func (t *Tool) Validate(connection, strict bool) error {
	v, err := t.validate(connection)
	if err != nil {
		return err
	}
	if t.Output.ForPrograms() {
		err = t.printFindings(v, v.Errors)
	} else {
		err = t.write(v)
	}
	if err == nil && strict && len(v.Warnings) > 0 {
		return ErrReported
	}
	return err
}

func (t *Tool) validate(connection bool) (config.Validation, error) {
	if len(t.Manifests) > 0 {
		m, err := t.readManifest()
		switch {
		case errors.Is(err, context.Canceled):
			return config.Validation{}, err
		case err != nil:
			return config.NewValidation(nil, err), nil
		}
		found, v := t.checkManifest(m, connection, len(m.Workloads) > 1)
		for _, p := range found {
			v = t.checkNodes(p.Config, v)
			if !p.Container.Provides() {
				continue // another image, named by --container
			}
			for _, u := range p.Unrunnable(p.Container.Image) {
				v.Errors = append(v.Errors, config.Problem{Key: p.Workload.Place() + ": " + u.Key, Message: u.Message})
			}
		}
		return v, nil
	}
	src := t.Sources
	inPlace := slices.ContainsFunc(os.Environ(), isConnection) // this is the process's environment
	apart := !connection && !inPlace
	src.Assume = config.Assumptions{Connection: apart, Namespace: !inPlace, Files: apart, Node: apart}
	cfg, v := t.loadFrom(src)
	return t.checkNodes(cfg, v), nil
}

// isConnection reports whether a variable, as NAME=value, is a connection setting of
// Conjur.
func isConnection(variable string) bool {
	name, value, _ := strings.Cut(variable, "=")
	return strings.HasPrefix(name, "CONJUR_") && value != ""
}
