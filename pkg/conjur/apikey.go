package conjur

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/url"

	"github.com/secretsync/syncer/pkg/secret"
)

// RotateKey gives a host a new API key and returns it. The server refuses the old
// key from then on. Access tokens from the old key stay valid until they expire.
// The identity needs "update" on the host. RotateKey refuses to rotate the client's
// own key. After an error other than a *StatusError, it is unknown whether the key
// changed.
func (c *Client) RotateKey(ctx context.Context, host string) (secret.Value, error) {
	if err := CheckID(host); err != nil {
		return secret.Value{}, err
	}
	to := c.base + "/authn/" + url.PathEscape(c.config.Account) + "/api_key?role=" + url.QueryEscape("host:"+host)
	req, err := http.NewRequest(http.MethodPut, to, nil)
	if err != nil {
		return secret.Value{}, err
	}
	r, err := c.ask(ctx, KindRotateKey, "of host "+host, req)
	if err != nil {
		return secret.Value{}, err
	}
	defer r.wipe()
	if r.status != http.StatusOK {
		return secret.Value{}, r.statusError("")
	}
	if len(r.body) < 16 || isJSON(r.header) {
		return secret.Value{}, errors.New("the answer is not an API key")
	}
	return secret.New(bytes.Clone(r.body)), nil
}

// LogIn gets an access token with another identity's API key, and discards the
// token. If the server refuses the key, the error is a *StatusError with status
// 401.
func (c *Client) LogIn(ctx context.Context, login string, key secret.Value) error {
	body := &credentialBody{value: secret.New(bytes.Clone(key.Bytes()))}
	defer body.wipe()
	req, err := c.authenticateRequest(Credential{Login: login, ContentType: "text/plain"}, body)
	if err != nil {
		return err
	}
	r, err := c.exchange(ctx, KindAuthenticate, login, req, nil)
	if err != nil {
		return err
	}
	defer r.wipe()
	if r.status != http.StatusOK {
		return r.statusError("")
	}
	if _, err := parseToken(r.body); err != nil {
		return r.statusError(err.Error())
	}
	return nil
}
