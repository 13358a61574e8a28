// Package home serves conjurd from a folder. The folder holds its data, keys and
// CA. The package also loads initial policies and values, and writes backups.
package home

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/secretsync/syncer/pkg/conjurd"
	"github.com/secretsync/syncer/pkg/conjurd/internal/policy"
)

// The files in the folder of a conjurd.
const (
	dataFile     = "data.db"
	dataKeyFile  = "data.key"
	caFile       = "ca.pem"
	caKeyFile    = "ca.key"
	adminKeyFile = "admin.key"
	apiKeysFile  = "api-keys.json" // API keys of users and hosts from --policy
	addressFile  = "address.json"  // where clients find the server, without any key
)

// Options extend the server's options. The folder replaces the options that concern
// data.
type Options struct {
	conjurd.Options
	// Dir is the folder. "" selects a temporary folder, which is removed at the
	// end.
	Dir string
	// Policies are files to load into root. Values are set afterwards.
	Policies []string
	Values   []Values
	// The audit log is appended to AuditFile. At each SIGUSR1 a copy of the data
	// replaces Backup. "" disables either.
	AuditFile, Backup string
	Addr              string
	// TLSCert and TLSKey are files. "" generates a certificate for Hosts.
	TLSCert, TLSKey string
	Hosts           []string
}

// Values holds values by variable, and the file that they come from.
type Values struct {
	File  string
	Value map[string][]byte
}

func (o *Options) path(name string) string { return filepath.Join(o.Dir, name) }

// home is an open folder.
type home struct {
	Options
	server *conjurd.Server
	ca     *conjurd.CA
	audit  *os.File // nil if there is none
}

// Init prepares a folder for Serve, and writes connection information to out.
func Init(ctx context.Context, o Options, out io.Writer) error {
	if o.Dir == "" {
		return errors.New("conjurd init: name the folder with --dir")
	}
	h, err := open(ctx, o, true)
	if err != nil {
		return err
	}
	err = h.writeAddress("")
	h.print(out, "")
	return errors.Join(err, h.close())
}

// Serve serves until ctx ends. It first writes connection information to out.
func Serve(ctx context.Context, o Options, out io.Writer) (err error) {
	if err := o.checkBackup(); err != nil {
		return err
	}
	o.Refused = func(login, from, why string) {
		who := "a log-in"
		if login != "" {
			who = fmt.Sprintf("the log-in of %.200q", login)
		}
		fmt.Fprintf(os.Stderr, "syncer: refused %s from %s: %s\n", who, from, strings.Map(printable, why))
	}
	temporary := o.Dir == ""
	if temporary {
		if o.Dir, err = os.MkdirTemp("", "conjurd-"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(o.Dir)) }()
	}
	h, err := open(ctx, o, temporary)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.close()) }()

	ln, err := net.Listen("tcp", o.Addr)
	if err != nil {
		return fmt.Errorf("%w; choose another address with --addr", err)
	}
	defer func() { _ = ln.Close() }() // unless the server did
	config, err := h.tlsConfig(ln.Addr())
	if err != nil {
		return err
	}
	scheme := "https://"
	if config == nil {
		scheme = "http://"
	}
	ctx, watched := h.watchData(ctx)
	defer func() { err = errors.Join(err, watched()) }()
	defer h.backUpOnSignal()()
	if !temporary {
		defer h.followKey()()
	}
	url := scheme + h.reachable(ln.Addr())
	if err := h.writeAddress(url); err != nil {
		return err
	}
	h.print(out, url)
	fmt.Fprintf(out, "# conjurd listens on %s; ^C stops it\n", ln.Addr())
	return h.server.Serve(ctx, ln, config)
}

// printable replaces characters that could control a terminal.
func printable(r rune) rune {
	if unicode.IsPrint(r) {
		return r
	}
	return ' '
}

// reachable returns the address for clients. A server that listens on all addresses is
// found by a name in its certificate.
func (h *home) reachable(listening net.Addr) string {
	host, port, err := net.SplitHostPort(listening.String())
	if ip := net.ParseIP(host); err != nil || ip == nil || !ip.IsUnspecified() {
		return listening.String()
	}
	host = "127.0.0.1"
	if len(h.Hosts) > 0 {
		host = h.Hosts[0]
	}
	return net.JoinHostPort(host, port)
}

// tlsConfig returns nil for plain HTTP. Without Hosts, the certificate is for loopback and
// the address that the server listens on.
func (h *home) tlsConfig(listening net.Addr) (*tls.Config, error) {
	if h.AllowPlainHTTP {
		return nil, nil
	}
	hosts := h.Hosts
	if tcp, ok := listening.(*net.TCPAddr); ok && len(hosts) == 0 && !tcp.IP.IsUnspecified() {
		hosts = append(conjurd.LoopbackHosts(), tcp.IP.String())
	}
	cert, err := h.ca.Issue(hosts...)
	if h.TLSCert != "" || h.TLSKey != "" {
		cert, err = tls.LoadX509KeyPair(h.TLSCert, h.TLSKey)
	}
	if err != nil {
		return nil, fmt.Errorf("certificate: %w", err)
	}
	return &tls.Config{Certificates: []tls.Certificate{cert}}, nil
}

// open opens the server in the folder, and loads policies and values. If create is
// true, it creates missing files. Otherwise a missing file is an error.
func open(ctx context.Context, o Options, create bool) (_ *home, err error) {
	h := &home{Options: o}
	defer func() {
		if err != nil {
			err = errors.Join(err, h.close())
		}
	}()
	if create {
		if _, err := os.Stat(o.path(dataFile)); errors.Is(err, fs.ErrNotExist) {
			o.Account = cmp.Or(o.Account, "default") // otherwise the account in the data
		}
		if err := os.MkdirAll(o.Dir, 0o700); err != nil {
			return nil, err
		}
	}
	if h.ca, err = loadCA(o, create); err != nil {
		return nil, err
	}
	o.Options.Data, o.Options.Create = o.path(dataFile), create
	if o.DataKey, err = conjurd.DataKey(o.path(dataKeyFile), create); err != nil {
		return nil, err
	}
	if o.AuditFile != "" {
		if h.audit, err = os.OpenFile(o.AuditFile, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err != nil {
			return nil, err
		}
		o.Audit = h.audit
	}
	if h.server, err = conjurd.Open(o.Options); err != nil {
		return nil, err
	}
	return h, h.load(ctx)
}

func (h *home) close() error {
	var errs []error
	if h.server != nil {
		errs = append(errs, h.server.Close())
	}
	if h.audit != nil {
		errs = append(errs, h.audit.Close())
	}
	return errors.Join(errs...)
}

// load writes the admin's key and loads policies and values.
func (h *home) load(ctx context.Context) error {
	key, err := h.server.APIKey(ctx, "admin")
	if err != nil {
		return err
	}
	if err := writeSecretFile(h.path(adminKeyFile), []byte(key)); err != nil {
		return err
	}
	keys, err := readAPIKeys(h.Dir)
	if err != nil {
		return err
	}
	for _, path := range h.Policies {
		if err := h.loadPolicy(ctx, path, keys); err != nil {
			return err
		}
	}
	if len(h.Policies) > 0 && len(keys) > 0 {
		text, err := json.MarshalIndent(keys, "", "  ")
		if err != nil {
			return err
		}
		if err := writeSecretFile(h.path(apiKeysFile), text); err != nil {
			return err
		}
	}
	for _, values := range h.Values {
		if err := h.server.SetMany(ctx, values.Value); err != nil {
			return fmt.Errorf("%s: %w", values.File, err)
		}
	}
	return nil
}

func (h *home) loadPolicy(ctx context.Context, path string, keys map[string]string) error {
	text, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = text.Close() }()
	roles, err := h.server.LoadPolicy(ctx, conjurd.Update, "root", text)
	if err != nil {
		if fault, ok := errors.AsType[*policy.Error](err); ok {
			if line, column, ok := fault.Position(); ok {
				return fmt.Errorf("%s:%d:%d: %s", path, line, column, fault.Message)
			}
		}
		return fmt.Errorf("%s: %w", path, err)
	}
	for _, role := range roles {
		keys[role.ID] = role.APIKey
	}
	return nil
}

// print writes connection information, without any key.
func (h *home) print(out io.Writer, url string) {
	if url != "" {
		fmt.Fprintf(out, "CONJUR_APPLIANCE_URL=%s\n", url)
	}
	fmt.Fprintf(out, "CONJUR_ACCOUNT=%s\n", h.server.Account())
	fmt.Fprintf(out, "CONJUR_CERT_FILE=%s\n", h.path(caFile))
	fmt.Fprintf(out, "CONJUR_AUTHN_LOGIN=admin\n")
	fmt.Fprintf(out, "# CONJUR_AUTHN_API_KEY is in %s\n", h.path(adminKeyFile))
	if _, err := os.Stat(h.path(apiKeysFile)); err == nil {
		fmt.Fprintf(out, "# those of the users and hosts that --policy made are in %s\n", h.path(apiKeysFile))
	}
}

// loadCA reads the folder's CA, or creates one.
func loadCA(o Options, create bool) (*conjurd.CA, error) {
	cert, err := os.ReadFile(o.path(caFile))
	if errors.Is(err, fs.ErrNotExist) && create {
		ca, err := conjurd.NewCA()
		if err != nil {
			return nil, err
		}
		return ca, errors.Join(writeSecretFile(o.path(caKeyFile), ca.Key), os.WriteFile(o.path(caFile), ca.Cert, 0o644))
	}
	if err != nil {
		return nil, fmt.Errorf("CA: %w; prepare the folder with conjurd init", err)
	}
	key, err := os.ReadFile(o.path(caKeyFile))
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
