package conjur

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/secretsync/syncer/internal/brief"
	"github.com/secretsync/syncer/internal/lazyregexp"
	"github.com/secretsync/syncer/pkg/secret"
)

// ErrNotOffered means that the server, like the genuine one, has no atomic set.
var ErrNotOffered = errors.New("the server cannot set several values atomically")

// NewValue is a value to set.
type NewValue struct {
	ID    string
	Value secret.Value
	// Version, if not nil, must be the variable's current version. 0 means that the
	// variable must never have been set. Only SetAll checks it.
	Version *uint64
}

// RefusedError lists all variables that prevented an atomic set.
type RefusedError struct {
	Status int
	// Codes maps a variable's id to the reason: not_found, forbidden, empty,
	// too_large, duplicate, version_conflict.
	Codes map[string]string
}

func (e *RefusedError) Error() string {
	var texts []string
	for _, id := range slices.Sorted(maps.Keys(e.Codes)) {
		texts = append(texts, fmt.Sprintf("%q: %s", id, e.Codes[id]))
	}
	return fmt.Sprintf("nothing was set (status %d): %s", e.Status, strings.Join(texts, "; "))
}

// SetAll sets all values in one transaction, or none. The error is ErrNotOffered or
// a *RefusedError. After any other error it is unknown whether the values were set.
func (c *Client) SetAll(ctx context.Context, values []NewValue) error {
	req, wipe, err := c.setAllRequest(values)
	if err != nil {
		return err
	}
	defer wipe()
	r, err := c.ask(ctx, KindSetAll, brief.Count(len(values), "variable"), req)
	if err != nil {
		return fmt.Errorf("%w (it is not known whether the values were set)", err)
	}
	switch codes := decodeRefusals(r.body); {
	case r.status == http.StatusOK && isJSON(r.header):
		return nil
	case len(codes) > 0 && r.status >= 400 && r.status < 500:
		return &RefusedError{r.status, codes}
	case (r.status == http.StatusNotFound || r.status == http.StatusMethodNotAllowed) && !isJSON(r.header):
		return ErrNotOffered
	}
	return r.statusError("")
}

// setAllRequest returns the request for conjurd's atomic set. wipe clears its body,
// which the client may send twice.
func (c *Client) setAllRequest(values []NewValue) (req *http.Request, wipe func(), err error) {
	type item struct {
		ID       string  `json:"id"`
		Value    []byte  `json:"value"` // base64 in JSON
		Encoding string  `json:"encoding"`
		Version  *uint64 `json:"version,omitempty"`
	}
	items := make([]item, len(values))
	for i, v := range values {
		items[i] = item{v.ID, v.Value.Bytes(), "base64", v.Version}
	}
	body, err := json.Marshal(map[string]any{"secrets": items})
	if err != nil {
		return nil, nil, errors.New("the values cannot be put into JSON")
	}
	to := c.base + "/secrets/" + url.PathEscape(c.config.Account) + "/values"
	if req, err = http.NewRequest(http.MethodPut, to, bytes.NewReader(body)); err != nil {
		return nil, nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	return req, func() { clear(body) }, nil
}

// Set sets one value. After an error other than a *StatusError, it is unknown
// whether the value was set.
func (c *Client) Set(ctx context.Context, id string, value secret.Value) error {
	if err := CheckID(id); err != nil {
		return err
	}
	req, err := c.api.RetrieveSecretRequest(c.fullID(id))
	if err != nil {
		return err
	}
	if req, err = http.NewRequest(http.MethodPost, req.URL.String(), bytes.NewReader(value.Bytes())); err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/octet-stream")
	r, err := c.ask(ctx, KindSet, fmt.Sprintf("%q", id), req)
	if err != nil {
		return err
	}
	if r.status != http.StatusCreated {
		return r.statusError("")
	}
	return nil
}

var refusalCode = lazyregexp.New(`^[a-z_]{1,40}$`)

// decodeRefusals reads the reasons of a refusal. It returns none if the body has
// another format.
func decodeRefusals(body []byte) map[string]string {
	var answer struct {
		Error struct {
			Details struct {
				Variables []struct{ ID, Code string }
			}
		}
	}
	if json.Unmarshal(body, &answer) != nil {
		return nil
	}
	codes := map[string]string{}
	for _, v := range answer.Error.Details.Variables {
		if !refusalCode().MatchString(v.Code) {
			v.Code = "refused"
		}
		codes[v.ID] = v.Code
	}
	return codes
}

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
