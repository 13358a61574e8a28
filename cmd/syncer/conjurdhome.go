package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/secretsync/syncer/pkg/conjurd"
	"github.com/secretsync/syncer/pkg/kube"
	"github.com/secretsync/syncer/pkg/tool"
)

// The files in the folder of a conjurd.
const (
	dataFile     = "data.db"
	dataKeyFile  = "data.key"
	caFile       = "ca.pem"
	caKeyFile    = "ca.key"
	adminKeyFile = "admin.key"
	apiKeysFile  = "api-keys.json" // of users and hosts that --policy made
)

// conjurdHome is a conjurd's folder, opened.
type conjurdHome struct {
	flags   conjurdFlags
	server  *conjurd.Server
	ca      *conjurd.CA
	audit   *os.File     // nil: none
	cluster *kube.Client // nil: none
}

// openConjurdHome opens the server in the folder of the flags, and loads the
// policies and values that they name. What is missing is made if create is
// set, and an error if not.
func openConjurdHome(ctx context.Context, f conjurdFlags, create bool) (_ *conjurdHome, err error) {
	h := &conjurdHome{flags: f}
	defer func() {
		if err != nil {
			err = errors.Join(err, h.close())
		}
	}()
	if create {
		if _, err := os.Stat(f.path(dataFile)); errors.Is(err, fs.ErrNotExist) {
			f.account = cmp.Or(f.account, "default") // else that of the data
		}
		if err := os.MkdirAll(f.dir, 0o700); err != nil {
			return nil, err
		}
	}
	if h.ca, err = loadCA(f, create); err != nil {
		return nil, err
	}
	key, err := conjurd.DataKey(f.path(dataKeyFile), create)
	if err != nil {
		return nil, err
	}
	options := conjurd.Options{
		Account: f.account, Data: f.path(dataFile), DataKey: key, Create: create, Strict: f.strict,
		AllowPlainHTTP: f.plainHTTP, UserTokenTTL: f.userTTL, HostTokenTTL: f.hostTTL,
	}
	if f.audit != "" {
		if h.audit, err = os.OpenFile(f.audit, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err != nil {
			return nil, err
		}
		options.Audit = h.audit
	}
	if f.kubernetes {
		client, err := kube.Connect(kube.Config{Kubeconfig: f.kubeconfig, UserAgent: "conjurd/" + version()})
		if err != nil {
			return nil, err
		}
		h.cluster, options.Kubernetes = client, pods{client}
	}
	if h.server, err = conjurd.Open(options); err != nil {
		return nil, err
	}
	return h, h.load(ctx)
}

func (h *conjurdHome) close() error {
	var errs []error
	if h.server != nil {
		errs = append(errs, h.server.Close())
	}
	if h.audit != nil {
		errs = append(errs, h.audit.Close())
	}
	if h.cluster != nil {
		h.cluster.Close()
	}
	return errors.Join(errs...)
}

// load writes the admin's key and loads policies and values.
func (h *conjurdHome) load(ctx context.Context) error {
	key, err := h.server.APIKey(ctx, "admin")
	if err != nil {
		return err
	}
	if err := writeSecretFile(h.flags.path(adminKeyFile), []byte(key)); err != nil {
		return err
	}
	keys := map[string]string{}
	for _, path := range h.flags.policies {
		if err := h.loadPolicy(ctx, path, keys); err != nil {
			return err
		}
	}
	if len(keys) > 0 {
		text, err := json.MarshalIndent(keys, "", "  ")
		if err != nil {
			return err
		}
		if err := writeSecretFile(h.flags.path(apiKeysFile), text); err != nil {
			return err
		}
	}
	for _, path := range h.flags.values {
		values, err := tool.ReadValues(path)
		if err != nil {
			return err
		}
		if err := h.server.SetMany(ctx, values); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return nil
}

func (h *conjurdHome) loadPolicy(ctx context.Context, path string, keys map[string]string) error {
	text, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = text.Close() }()
	roles, err := h.server.LoadPolicy(ctx, conjurd.Update, "root", text)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	for _, role := range roles {
		keys[role.ID] = role.APIKey
	}
	return nil
}

// print tells how to reach the server; never a key.
func (h *conjurdHome) print(out io.Writer, url string) {
	if url != "" {
		fmt.Fprintf(out, "CONJUR_APPLIANCE_URL=%s\n", url)
	}
	fmt.Fprintf(out, "CONJUR_ACCOUNT=%s\n", h.server.Account())
	fmt.Fprintf(out, "CONJUR_CERT_FILE=%s\n", h.flags.path(caFile))
	fmt.Fprintf(out, "CONJUR_AUTHN_LOGIN=admin\n")
	fmt.Fprintf(out, "# CONJUR_AUTHN_API_KEY is in %s\n", h.flags.path(adminKeyFile))
	if _, err := os.Stat(h.flags.path(apiKeysFile)); err == nil {
		fmt.Fprintf(out, "# those of the users and hosts that --policy made are in %s\n", h.flags.path(apiKeysFile))
	}
}

// loadCA reads the folder's CA, or makes one.
func loadCA(f conjurdFlags, create bool) (*conjurd.CA, error) {
	cert, err := os.ReadFile(f.path(caFile))
	if errors.Is(err, fs.ErrNotExist) && create {
		ca, err := conjurd.NewCA()
		if err != nil {
			return nil, err
		}
		return ca, errors.Join(writeSecretFile(f.path(caKeyFile), ca.Key), os.WriteFile(f.path(caFile), ca.Cert, 0o644))
	}
	if err != nil {
		return nil, fmt.Errorf("CA: %w; prepare the folder with conjurd init", err)
	}
	key, err := os.ReadFile(f.path(caKeyFile))
	if err != nil {
		return nil, fmt.Errorf("CA: %w", err)
	}
	return &conjurd.CA{Cert: cert, Key: key}, nil
}

// writeSecretFile writes a file that only its owner may read.
func writeSecretFile(path string, content []byte) error {
	if err := os.WriteFile(path, content, 0o600); err != nil {
		return err
	}
	return os.Chmod(path, 0o600)
}
