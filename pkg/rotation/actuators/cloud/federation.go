package cloud

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/secretsync/syncer/internal/safefile"
	"github.com/secretsync/syncer/pkg/conjur/authn"
	"github.com/secretsync/syncer/pkg/secret"
)

const (
	googleExchange = "https://sts.googleapis.com"
	googleAccounts = "https://iamcredentials.googleapis.com"
)

// external is a file of workload identity federation. It says where the token of another
// issuer is, and for what Google exchanges it
// (https://cloud.google.com/iam/docs/reference/sts/rest/v1/TopLevel/token).
type external struct {
	Audience  string `json:"audience"`
	TokenType string `json:"subject_token_type"`
	// Account is the URL of generateAccessToken; empty: the identity itself has the rights.
	Account string `json:"service_account_impersonation_url"`
	Source  struct {
		File   string `json:"file"`
		Format struct {
			Type  string `json:"type"` // text or json
			Field string `json:"subject_token_field_name"`
		} `json:"format"`
	} `json:"credential_source"`
}

// own returns an access token of this process. Like other programs, Syncer reads
// GOOGLE_APPLICATION_CREDENTIALS before it asks the metadata service.
func (g *google) own(ctx context.Context) (secret.Value, time.Duration, error) {
	var value secret.Value
	var err error
	file := os.Getenv("GOOGLE_APPLICATION_CREDENTIALS")
	switch {
	case g.Admin != nil:
		value, err = g.Admin(ctx)
	case file == "":
		token, valid, err := authn.GCPToken(ctx, g.Endpoint)
		return token, valid, explainMissingIdentity(err, "gcp")
	default:
		var text []byte
		if text, err = safefile.Read(file, 64<<10); err != nil {
			err = fmt.Errorf("GOOGLE_APPLICATION_CREDENTIALS: %w", err)
		}
		value = secret.New(text)
	}
	defer value.Wipe()
	if err != nil {
		return secret.Value{}, 0, err
	}
	var has struct{ Type string }
	if json.Unmarshal(value.Bytes(), &has) != nil {
		return secret.Value{}, 0, errors.New("the credentials for Google Cloud are not JSON; use the whole key.json")
	}
	switch has.Type {
	case "service_account":
		return g.token(ctx, value)
	case "external_account":
		return g.federated(ctx, value)
	}
	return secret.Value{}, 0, fmt.Errorf("the credentials for Google Cloud have the type %q; Syncer supports service_account (a key.json) and external_account (workload identity federation)", plain(has.Type))
}

// federated exchanges the token of another issuer for an access token, and that for a
// token of a service account if the file names one.
func (g *google) federated(ctx context.Context, value secret.Value) (secret.Value, time.Duration, error) {
	var has external
	if json.Unmarshal(value.Bytes(), &has) != nil || has.Audience == "" || has.TokenType == "" {
		return secret.Value{}, 0, errors.New("the external_account for Google Cloud lacks audience or subject_token_type; create the file again, with \"gcloud iam workload-identity-pools create-cred-config\"")
	}
	path, known := strings.CutPrefix(has.Account, googleAccounts)
	if has.Account != "" && (!known || !strings.HasPrefix(path, "/")) {
		return secret.Value{}, 0, fmt.Errorf("service_account_impersonation_url of the external_account must begin with %s/, because Syncer sends a token there", googleAccounts)
	}
	subject, err := has.subject()
	if err != nil {
		return secret.Value{}, 0, err
	}
	token, valid, err := exchange(ctx, g.tokens, g.at(googleExchange, "/v1/token"), url.Values{
		"grant_type": {"urn:ietf:params:oauth:grant-type:token-exchange"}, "requested_token_type": {"urn:ietf:params:oauth:token-type:access_token"},
		"audience": {has.Audience}, "scope": {googleScope}, "subject_token_type": {has.TokenType}, "subject_token": {subject},
	})
	if err != nil || has.Account == "" {
		return token, valid, err
	}
	defer token.Wipe()
	as := &bearer{caller: newCaller("Google's Service Account Credentials", g.Client, apiCode), token: token, until: time.Now().Add(time.Minute)}
	as.get = func(context.Context) (secret.Value, time.Duration, error) { return clone(token), time.Minute, nil }
	var answer struct {
		Token text      `json:"accessToken"`
		Ends  time.Time `json:"expireTime"`
	}
	in := map[string]any{"scope": []string{googleScope}, "lifetime": "3600s"}
	if err := as.call(ctx, "generateAccessToken", http.MethodPost, g.at(googleAccounts, path), in, &answer); err != nil {
		return secret.Value{}, 0, err
	}
	if len(answer.Token) == 0 {
		return secret.Value{}, 0, errors.New("the answer of Google to generateAccessToken contains no token; Syncer tries again")
	}
	return secret.New(answer.Token), answer.Ends.Sub(as.now()), nil
}

// subject reads the token of the other issuer.
func (e external) subject() (string, error) {
	if e.Source.File == "" {
		return "", errors.New("credential_source of the external_account for Google Cloud names no file; Syncer reads the token only from a file, such as a projected token of the Pod")
	}
	text, err := safefile.Read(e.Source.File, 64<<10)
	defer clear(text)
	if err != nil {
		return "", fmt.Errorf("credential_source of the external_account: %w", err)
	}
	if e.Source.Format.Type != "json" {
		return string(bytes.TrimSpace(text)), nil
	}
	var fields map[string]any
	_ = json.Unmarshal(text, &fields)
	token, _ := fields[e.Source.Format.Field].(string)
	if token == "" {
		return "", fmt.Errorf("the file %s has no text in the field that subject_token_field_name of the external_account names", e.Source.File)
	}
	return token, nil
}
