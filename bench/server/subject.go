package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

const account = "bench"

// subject is a running conjurd with a client. Its variables are app/var000000 and
// so on, each with a value of 40 bytes.
type subject struct {
	dir, url string
	cmd      *exec.Cmd
	key      string // the admin's API key
	client   *http.Client
	token    string // the Authorization header
}

func variable(i int) string { return fmt.Sprintf("app/var%06d", i) }

// startServer prepares a folder with n variables and serves it.
func startServer(ctx context.Context, syncer string, n int) (_ *subject, err error) {
	s := &subject{}
	if s.dir, err = os.MkdirTemp("", "bench-conjurd-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			s.stop()
		}
	}()
	if err := s.write(n); err != nil {
		return nil, err
	}
	home := filepath.Join(s.dir, "home")
	prepare := exec.CommandContext(ctx, syncer, "conjurd", "init", "--dir", home, "--account", account,
		"--policy", filepath.Join(s.dir, "policy.yml"), "--values", filepath.Join(s.dir, "values.yml"))
	if out, err := prepare.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("conjurd init: %w: %s", err, out)
	}
	s.cmd = exec.CommandContext(ctx, syncer, "conjurd", "--dir", home, "--account", account, "--addr", "127.0.0.1:0")
	s.cmd.Stderr = os.Stderr
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	if s.url, err = firstValue(out, "CONJUR_APPLIANCE_URL="); err != nil {
		return nil, err
	}
	return s, s.connect(home)
}

func (s *subject) write(n int) error {
	var policy, values bytes.Buffer
	policy.WriteString("- !policy\n  id: app\n  body:\n")
	for i := range n {
		fmt.Fprintf(&policy, "  - !variable var%06d\n", i)
		fmt.Fprintf(&values, "%s: value-%034d\n", variable(i), i)
	}
	return errors.Join(
		os.WriteFile(filepath.Join(s.dir, "policy.yml"), policy.Bytes(), 0o600),
		os.WriteFile(filepath.Join(s.dir, "values.yml"), values.Bytes(), 0o600))
}

// firstValue reads lines until one begins with the prefix.
func firstValue(out io.Reader, prefix string) (string, error) {
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if value, ok := strings.CutPrefix(lines.Text(), prefix); ok {
			return value, nil
		}
	}
	return "", errors.New("conjurd did not start")
}

// connect creates the client and logs in.
func (s *subject) connect(home string) error {
	ca, err := os.ReadFile(filepath.Join(home, "ca.pem"))
	if err != nil {
		return err
	}
	key, err := os.ReadFile(filepath.Join(home, "admin.key"))
	if err != nil {
		return err
	}
	s.key = string(key)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	s.client = &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: pool}, MaxIdleConnsPerHost: 200, DisableCompression: true,
	}}
	token, err := s.authenticate(context.Background())
	s.token = `Token token="` + base64.StdEncoding.EncodeToString(token) + `"`
	return err
}

func (s *subject) authenticate(ctx context.Context) ([]byte, error) {
	return s.do(ctx, http.MethodPost, "/authn/"+account+"/admin/authenticate", s.key)
}

func (s *subject) read(ctx context.Context, i int) error {
	_, err := s.do(ctx, http.MethodGet, "/secrets/"+account+"/variable/"+url.PathEscape(variable(i)), "")
	return err
}

// batch reads n variables, beginning with first, in one request.
func (s *subject) batch(ctx context.Context, first, n int) error {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = account + ":variable:" + variable(first+i)
	}
	_, err := s.do(ctx, http.MethodGet, "/secrets?variable_ids="+strings.Join(ids, ","), "")
	return err
}

func (s *subject) do(ctx context.Context, method, path, body string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, s.url+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	if s.token != "" {
		req.Header.Set("Authorization", s.token)
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	content, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s %s: %s", method, strings.SplitN(path, "?", 2)[0], resp.Status)
	}
	return content, err
}

// stop ends the server and removes its folder. It may be called more than once.
func (s *subject) stop() {
	if s.cmd != nil {
		_ = s.cmd.Process.Signal(syscall.SIGTERM)
		_ = s.cmd.Wait()
		s.cmd = nil
	}
	if s.client != nil {
		s.client.CloseIdleConnections()
	}
	_ = os.RemoveAll(s.dir)
}
