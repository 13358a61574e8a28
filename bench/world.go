package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/secretsync/syncer/pkg/conjurd"
)

const (
	account    = "bench"
	policyPath = "app"
	host       = policyPath + "/web"
)

// world is a server with a profile's variables, and a Pod's folders.
type world struct {
	profile profile
	dir     string // the Pod's root; the folders are below dir/conjur
	server  *conjurd.Server
	meter   meter
	served  *conjurd.Loopback
	values  [][]byte // of the variables
}

// newWorld creates a world with its folder in dir.
func newWorld(ctx context.Context, p profile, dir string) (_ *world, err error) {
	w := &world{profile: p}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.close())
		}
	}()
	if w.dir, err = os.MkdirTemp(dir, "syncer-bench-"); err != nil {
		return nil, err
	}
	if w.server, err = conjurd.Open(conjurd.Options{Account: account}); err != nil {
		return nil, err
	}
	steps := []func(context.Context) error{w.loadPolicy, w.setValues, w.allowJWT, w.clear, w.annotate, w.serve}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	return w, nil
}

func (w *world) loadPolicy(ctx context.Context) error {
	var text strings.Builder
	fmt.Fprintf(&text, "- !policy\n  id: %s\n  body:\n", policyPath)
	for i := range w.profile.count() {
		fmt.Fprintf(&text, "  - !variable %s\n", variableName(i))
	}
	fmt.Fprintf(&text, "  - !host { id: web, annotations: { authn-jwt/%s/sub: web } }\n", jwtService)
	for i := range w.profile.count() {
		fmt.Fprintf(&text, "  - !permit { role: !host web, privileges: [read, execute], resource: !variable %s }\n", variableName(i))
	}
	for node := range w.profile.nodes {
		for i := range w.profile.count() {
			fmt.Fprintf(&text, "- !variable %s\n", w.profile.override(node, i))
		}
	}
	if w.profile.nodes > 0 {
		for i := range w.profile.count() {
			fmt.Fprintf(&text, "- !permit { role: !host %s, privileges: [read, execute], resource: !variable %s }\n", host, w.profile.override(0, i))
		}
	}
	text.WriteString(jwtPolicy)
	_, err := w.server.LoadPolicy(ctx, conjurd.Add, "root", strings.NewReader(text.String()))
	return err
}

func (w *world) setValues(ctx context.Context) error {
	w.values = make([][]byte, w.profile.count())
	all := make(map[string][]byte, len(w.values))
	for i := range w.values {
		w.values[i] = randomValue(valueLength(i))
		all[w.profile.variable(i)] = w.values[i]
	}
	return w.server.SetMany(ctx, all)
}

// change sets a variable to another value of the same length.
func (w *world) change(ctx context.Context, i int) error {
	w.values[i] = randomValue(valueLength(i))
	return w.server.Set(ctx, w.profile.variable(i), w.values[i])
}

// randomValue returns a text that every format holds without escapes.
func randomValue(n int) []byte {
	var text strings.Builder
	for text.Len() < n {
		text.WriteString(rand.Text())
	}
	return []byte(text.String()[:n])
}

// serve starts the server. It outlives the processes, so that none loses it before
// its end.
func (w *world) serve(context.Context) (err error) {
	w.served, err = conjurd.ServeLoopback(w.meter.handler(w.server.Handler()), w.meter.accepted)
	return err
}

// path returns the path of a file or folder below the Pod's /conjur.
func (w *world) path(elem ...string) string {
	return filepath.Join(append([]string{w.dir, "conjur"}, elem...)...)
}

// clear empties the folders that a process writes to.
func (w *world) clear(context.Context) error {
	var errs []error
	for _, dir := range []string{"secrets", "status"} {
		errs = append(errs, os.RemoveAll(w.path(dir)), os.MkdirAll(w.path(dir), 0o755))
	}
	return errors.Join(errs...)
}

// annotate writes the annotations and templates.
func (w *world) annotate(context.Context) error {
	annotations := map[string]string{
		"container-mode": "sidecar", "secrets-destination": "file", "secrets-refresh-interval": interval.String(),
	}
	errs := []error{os.MkdirAll(w.path("templates"), 0o755), os.MkdirAll(w.path("podinfo"), 0o755)}
	for i := range w.profile.groups {
		g := w.profile.group(i)
		var names, template strings.Builder
		for v := g.first; v < g.end; v++ {
			fmt.Fprintf(&names, "- %s\n", variableName(v))
			fmt.Fprintf(&template, "%s = {{ secret %q }}\n", variableName(v), variableName(v))
		}
		annotations["conjur-secrets."+g.name] = names.String()
		annotations["conjur-secrets-policy-path."+g.name] = policyPath
		annotations["secret-file-format."+g.name] = g.format
		annotations["secret-file-path."+g.name] = g.file()
		if w.profile.nodes > 0 {
			annotations["node-secrets."+g.name] = "true"
		}
		if g.format == "template" {
			errs = append(errs, os.WriteFile(w.path("templates", g.name+".tpl"), []byte(template.String()), 0o644))
		}
	}
	var text strings.Builder
	for key, value := range annotations {
		fmt.Fprintf(&text, "conjur.org/%s=%s\n", key, strconv.Quote(value))
	}
	return errors.Join(append(errs, os.WriteFile(w.path("podinfo", "annotations"), []byte(text.String()), 0o644))...)
}

// holds reports whether a group's file exists with all of its values.
func (w *world) holds(g group) bool {
	content, err := os.ReadFile(w.path("secrets", g.file()))
	if err != nil {
		return false
	}
	for i := g.first; i < g.end; i++ {
		if !bytes.Contains(content, w.values[i]) {
			return false
		}
	}
	return true
}

// close stops the server and removes everything.
func (w *world) close() error {
	errs := []error{w.served.Close()}
	if w.server != nil {
		errs = append(errs, w.server.Close())
	}
	if w.dir != "" {
		errs = append(errs, os.RemoveAll(w.dir))
	}
	return errors.Join(errs...)
}
