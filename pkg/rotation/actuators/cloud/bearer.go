package cloud

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/secretsync/syncer/pkg/secret"
)

// bearer sends calls with an access token, which it keeps while it is valid.
type bearer struct {
	*caller
	// get returns a token and how long it is valid.
	get func(context.Context) (secret.Value, time.Duration, error)

	token secret.Value
	until time.Time
}

// call sends a call whose body is in, as JSON, and reads the answer into into. If the
// token is no longer accepted, it gets another one once.
func (b *bearer) call(ctx context.Context, call, method, to string, in, into any) error {
	err := b.send(ctx, call, method, to, in, into)
	if f, ok := errors.AsType[*fault](err); ok && f.expired() {
		b.until = time.Time{}
		err = b.send(ctx, call, method, to, in, into)
	}
	return err
}

func (b *bearer) send(ctx context.Context, call, method, to string, in, into any) error {
	if time.Now().After(b.until) {
		token, valid, err := b.get(ctx)
		if err != nil {
			return err
		}
		b.token.Wipe()
		b.token, b.until = token, time.Now().Add(valid-time.Minute)
	}
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return err
		}
	}
	req, err := http.NewRequest(method, to, bytes.NewReader(body))
	if err != nil {
		return errors.New("the address of the cloud cannot be read; look at endpoint")
	}
	req.Header.Set("Authorization", "Bearer "+string(b.token.Bytes()))
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	answer, err := b.do(ctx, call, req)
	defer clear(answer)
	if err != nil || into == nil && len(answer) == 0 {
		return err
	}
	if into == nil {
		into = &struct{}{}
	}
	if json.Unmarshal(answer, into) != nil || bytes.Equal(bytes.TrimSpace(answer), []byte("null")) {
		return fmt.Errorf("the answer of %s to %s is not in its documented form; Syncer tries again", b.service, call)
	}
	return nil
}

// exchange sends a form to a token service. The error is a fault with the code of OAuth.
func exchange(ctx context.Context, c *caller, to string, values url.Values) (secret.Value, time.Duration, error) {
	req, err := form(to, values)
	if err != nil {
		return secret.Value{}, 0, errors.New("the address of the token service cannot be read; look at endpoint")
	}
	body, err := c.do(ctx, "a request for a token", req)
	defer clear(body)
	if err != nil {
		return secret.Value{}, 0, err
	}
	var answer struct {
		Token   text `json:"access_token"`
		Seconds int  `json:"expires_in"`
	}
	if json.Unmarshal(body, &answer) != nil || len(answer.Token) == 0 {
		return secret.Value{}, 0, fmt.Errorf("the answer of %s is not a token; Syncer tries again", c.service)
	}
	return secret.New(answer.Token), time.Duration(answer.Seconds) * time.Second, nil
}

// explainMissingIdentity adds what to do if the machine gives Syncer no identity.
func explainMissingIdentity(err error, cloud string) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w; give the Pod of Syncer an identity in the cloud, or set %s.admin", err, cloud)
}

// text is a JSON string whose bytes can be cleared.
type text []byte

func (t *text) UnmarshalText(from []byte) error {
	*t = bytes.Clone(from)
	return nil
}

// disabled is the reason of Google Cloud for an API that a project has not enabled.
const disabled = "SERVICE_DISABLED"

// apiCode returns the code of an error. Google Cloud writes it as status, Microsoft Graph
// as code.
func apiCode(answer []byte) string {
	var said struct {
		Error struct {
			Status  string `json:"status"`
			Code    any    `json:"code"` // Google Cloud writes the number of HTTP here
			Details []struct {
				Reason string `json:"reason"`
			} `json:"details"`
		} `json:"error"`
	}
	_ = json.Unmarshal(answer, &said)
	for _, detail := range said.Error.Details {
		if detail.Reason == disabled {
			return disabled
		}
	}
	code, _ := said.Error.Code.(string)
	return cmp.Or(said.Error.Status, code)
}

// oauthCode returns the code of an error of a token service.
func oauthCode(answer []byte) string {
	var said struct {
		Error string `json:"error"`
	}
	_ = json.Unmarshal(answer, &said)
	return said.Error
}
