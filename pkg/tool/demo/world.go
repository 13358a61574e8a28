package demo

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/pkg/conjurd"
)

const (
	account = "demo"
	host    = "app"
)

// names are the variables of each group.
var names = [...]string{"host", "port", "user", "password", "token"}

// group is one secret group of the demonstration.
type group struct {
	name, format string
	path         string // of its file
}

func (g group) variable(i int) string { return g.name + "/" + names[i] }

// world is the server and the folders of the demonstration.
type world struct {
	dir    string
	server *conjurd.Server
	served *conjurd.Loopback
	env    map[string]string
	groups []group
}

func newWorld(ctx context.Context) (_ *world, err error) {
	w := &world{groups: []group{
		{name: "cache", format: "bash"}, {name: "database", format: "yaml"}, {name: "mail", format: "json"},
		{name: "queue", format: "dotenv"}, {name: "web", format: "template"},
	}}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.close())
		}
	}()
	if w.dir, err = os.MkdirTemp("", "syncer-demo-"); err != nil {
		return nil, err
	}
	if w.server, err = conjurd.Open(conjurd.Options{Account: account}); err != nil {
		return nil, err
	}
	return w, errors.Join(w.fill(ctx), w.serve(ctx), w.annotate())
}

// fill loads the policy and a value for each variable.
func (w *world) fill(ctx context.Context) error {
	var policy strings.Builder
	values := map[string][]byte{}
	fmt.Fprintf(&policy, "- !host %s\n", host)
	for _, g := range w.groups {
		fmt.Fprintf(&policy, "- !policy\n  id: %s\n  body:\n", g.name)
		for i, name := range names {
			fmt.Fprintf(&policy, "  - !variable %s\n", name)
			values[g.variable(i)] = randomValue()
		}
		for i := range names {
			fmt.Fprintf(&policy, "- !permit\n  role: !host %s\n  privileges: [read, execute]\n  resource: !variable %s\n", host, g.variable(i))
		}
	}
	if _, err := w.server.LoadPolicy(ctx, conjurd.Add, "root", strings.NewReader(policy.String())); err != nil {
		return err
	}
	return w.server.SetMany(ctx, values)
}

// serve starts the server.
func (w *world) serve(ctx context.Context) error {
	key, err := w.server.APIKey(ctx, "host/"+host)
	if err != nil {
		return err
	}
	// It outlives the pipeline, so that the pipeline does not miss it at the end.
	if w.served, err = conjurd.ServeLoopback(w.server.Handler(), nil); err != nil {
		return err
	}
	w.env = map[string]string{
		"CONJUR_APPLIANCE_URL": w.served.URL, "CONJUR_ACCOUNT": account, "CONJUR_SSL_CERTIFICATE": string(w.served.CA),
		"CONJUR_AUTHN_LOGIN": "host/" + host, "CONJUR_AUTHN_API_KEY": key,
	}
	return nil
}

// annotate writes the files of a Pod: annotations, template, folders.
func (w *world) annotate() error {
	annotations := map[string]string{
		"container-mode": "sidecar", "secrets-destination": "file",
		"secrets-refresh-interval": "1s", "removal-grace": "0s", "exit-on-revoked": "false",
	}
	address, err := freeAddress()
	if err != nil {
		return err
	}
	annotations["server-address"], annotations["server-status"] = address, "true"
	for i := range w.groups {
		g := &w.groups[i]
		file := g.name + ".conf"
		g.path = filepath.Join(w.dir, "secrets", file)
		annotations["conjur-secrets."+g.name] = "- " + strings.Join(names[:], "\n- ") + "\n"
		annotations["conjur-secrets-policy-path."+g.name] = g.name
		annotations["secret-file-format."+g.name] = g.format
		annotations["secret-file-path."+g.name] = file
		annotations["secret-file-permissions."+g.name] = "rw-------"
	}
	var text strings.Builder
	for key, value := range annotations {
		fmt.Fprintf(&text, "conjur.org/%s=%s\n", key, strconv.Quote(value))
	}
	return errors.Join(
		os.MkdirAll(filepath.Join(w.dir, "secrets"), 0o700),
		os.MkdirAll(filepath.Join(w.dir, "templates"), 0o700),
		os.WriteFile(filepath.Join(w.dir, "annotations"), []byte(text.String()), 0o600),
		w.writeTemplate("# template, edition 1"),
	)
}

// freeAddress returns a local address on which nothing listens.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// templated is the group that has a template.
func (w *world) templated() group { return w.groups[len(w.groups)-1] }

func (w *world) writeTemplate(mark string) error {
	text := mark + "\nlisten = {{ secret \"host\" }}:{{ secret \"port\" }}\nsession_key = {{ secret \"token\" }}\nadmin = {{ secret \"user\" }} {{ secret \"password\" }}\n"
	return os.WriteFile(filepath.Join(w.dir, "templates", w.templated().name+".tpl"), []byte(text), 0o600)
}

// config loads the configuration in the same way as in a Pod.
func (w *world) config() (*config.Config, error) {
	cfg, _, err := config.Load(config.Sources{
		Annotations:  config.File{Name: filepath.Join(w.dir, "annotations")},
		Getenv:       func(name string) string { return w.env[name] },
		SecretsDir:   filepath.Join(w.dir, "secrets"),
		TemplatesDir: filepath.Join(w.dir, "templates"),
		StatusDir:    filepath.Join(w.dir, "status"),
	}.Read())
	return cfg, err
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

// randomValue returns a value that need not stay secret.
func randomValue() []byte { return []byte(rand.Text()) }
