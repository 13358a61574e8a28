package conjur

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/secretsync/syncer/pkg/safefile"
	"github.com/secretsync/syncer/pkg/secret"
)

// Authenticator gives the credential that the server exchanges for an access
// token. It is asked at every authentication and must read its source afresh.
type Authenticator interface {
	Credential(ctx context.Context) (Credential, error)
}

// Credential is one authentication request:
// POST {URL}/{account}[/{Login}]/authenticate.
type Credential struct {
	// URL is that of the authenticator, as in https://host/authn-jwt/service.
	// Empty means the plain authenticator "authn" of the server.
	URL         string
	Login       string // as it is, not escaped; empty: the server finds out
	ContentType string
	Body        secret.Value // wiped by the client
}

// APIKey authenticates a user or host ("host/path/name") by its API key.
type APIKey struct {
	URL   string // empty: {appliance}/authn
	Login string
	Key   secret.Value
	// KeyFile, if set, is read at every authentication instead of Key; white
	// space around the key does not count.
	KeyFile string
}

// Credential implements Authenticator.
func (a APIKey) Credential(context.Context) (Credential, error) {
	key := bytes.Clone(a.Key.Bytes())
	if a.KeyFile != "" {
		text, err := readCredential("API key", a.KeyFile)
		if err != nil {
			return Credential{}, err
		}
		key = text
	}
	return Credential{URL: a.URL, Login: a.Login, ContentType: "text/plain", Body: secret.New(key)}, nil
}

func (a APIKey) check() error {
	var errs []error
	if a.URL != "" {
		if err := checkURL(a.URL); err != nil {
			errs = append(errs, fmt.Errorf("authentication URL: %w", err))
		}
	}
	if a.Login == "" {
		errs = append(errs, errors.New("login is missing"))
	}
	if a.Key.Len() == 0 && a.KeyFile == "" {
		errs = append(errs, errors.New("API key is missing"))
	}
	return errors.Join(errs...)
}

// JWT authenticates by a JSON Web Token, such as that of a Kubernetes service
// account.
type JWT struct {
	URL       string // as in https://host/authn-jwt/service
	TokenPath string // the file that holds the token
	Login     string // usually empty: the token says who it is
}

// Credential implements Authenticator.
func (j JWT) Credential(context.Context) (Credential, error) {
	text, err := readCredential("JWT", j.TokenPath)
	if err != nil {
		return Credential{}, err
	}
	defer clear(text)
	return Credential{
		URL: j.URL, Login: j.Login,
		ContentType: "application/x-www-form-urlencoded",
		Body:        secret.New(append([]byte("jwt="), text...)),
	}, nil
}

func (j JWT) check() error {
	var errs []error
	if err := checkURL(j.URL); err != nil {
		errs = append(errs, fmt.Errorf("authentication URL: %w", err))
	}
	if j.TokenPath == "" {
		errs = append(errs, errors.New("path of the JWT file is missing"))
	}
	return errors.Join(errs...)
}

// mostRead bounds what is read of a file with a credential or certificates.
const mostRead = 16 << 20

// readCredential reads a file without the white space around its text, which
// the server does not forgive.
func readCredential(what, path string) ([]byte, error) {
	b, err := safefile.Read(path, mostRead)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	text := bytes.TrimSpace(b)
	if len(text) == 0 {
		return nil, fmt.Errorf("%s: file %s is empty", what, path)
	}
	if bytes.ContainsAny(text, " \t\r\n\x00") {
		clear(b)
		return nil, fmt.Errorf("%s: file %s holds more than one word", what, path)
	}
	return text, nil
}

// authenticate exchanges the credential for a token.
func (c *Client) authenticate(ctx context.Context) (*token, error) {
	if err := c.gate.check(); err != nil {
		return nil, err // before a credential is fetched for nothing
	}
	requested := time.Now()
	cred, err := c.config.Authenticator.Credential(ctx)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", KindAuthenticate, err)
	}
	body := &credentialBody{value: cred.Body}
	defer body.wipe()
	req, err := c.authenticateRequest(cred, body)
	if err != nil {
		return nil, err
	}
	r, err := c.exchange(ctx, KindAuthenticate, cred.Login, req)
	if err != nil {
		return nil, err
	}
	defer r.wipe()
	if r.status != http.StatusOK {
		return nil, r.statusError("")
	}
	t, err := parseToken(r.body)
	if err != nil {
		return nil, r.statusError(err.Error())
	}
	t.issued = requested
	return t, nil
}

func (c *Client) authenticateRequest(cred Credential, body *credentialBody) (*http.Request, error) {
	target := cred.URL
	if target == "" {
		target = c.base + "/authn"
	}
	target = strings.TrimRight(target, "/") + "/" + c.config.Account
	if cred.Login != "" {
		target += "/" + url.PathEscape(cred.Login)
	}
	req, err := http.NewRequest(http.MethodPost, target+"/authenticate", nil)
	if err != nil {
		return nil, fmt.Errorf("%s: the authentication URL is malformed", KindAuthenticate)
	}
	req.Header.Set("Content-Type", cred.ContentType)
	body.attach(req)
	return req, nil
}
