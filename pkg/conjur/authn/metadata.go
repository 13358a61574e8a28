package authn

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/secret"
)

const (
	// metadataTimeout bounds a request to a cloud's metadata service. Such a
	// service answers within milliseconds if it exists.
	metadataTimeout = 10 * time.Second
	// maxMetadata bounds the answer. A token has about two kilobytes.
	maxMetadata = 64 << 10
)

// askMetadata returns the answer of a cloud's metadata service. It contacts the
// service directly: it uses no proxy, follows no redirect, and closes the
// connection. The error names the service and contains nothing that was received.
func askMetadata(ctx context.Context, service, address string, header http.Header) ([]byte, error) {
	limited, cancel := context.WithTimeout(ctx, metadataTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(limited, http.MethodGet, address, nil)
	if err != nil {
		return nil, fmt.Errorf("%s: the address is malformed", service)
	}
	req.Header = header
	client := &http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true, DisableCompression: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	resp, err := client.Do(req)
	var body []byte
	if err == nil {
		defer resp.Body.Close()
		body, err = io.ReadAll(io.LimitReader(resp.Body, maxMetadata+1))
	}
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("%s at %s: no complete answer yet: %w", service, req.URL.Host, ctx.Err())
	case limited.Err() != nil:
		return nil, fmt.Errorf("%s at %s: no complete answer within %v", service, req.URL.Host, metadataTimeout)
	case err != nil:
		return nil, fmt.Errorf("%s at %s: %w", service, req.URL.Host, plain(err))
	case resp.StatusCode != http.StatusOK:
		clear(body)
		return nil, fmt.Errorf("%s at %s: it answered %d", service, req.URL.Host, resp.StatusCode)
	case len(body) > maxMetadata:
		clear(body)
		return nil, fmt.Errorf("%s at %s: the answer is longer than %d bytes", service, req.URL.Host, maxMetadata)
	}
	return body, nil
}

// plain converts a connection error into one that is safe to show, because net/http
// quotes text that it cannot parse.
func plain(err error) error {
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return op
	}
	return errors.New("the connection was closed before the answer ended, or the answer is not HTTP")
}

// checkToken returns an error for an answer that cannot be a token. A portal's page
// must not reach Conjur, and its text must not be shown.
func checkToken(service string, token []byte) error {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.="
	if bytes.Count(token, []byte(".")) != 2 || len(bytes.Trim(token, letters)) > 0 {
		return fmt.Errorf("%s: the answer is not a token", service)
	}
	return nil
}

// at returns a URL of the metadata service, with a query.
func at(base, path string, query url.Values) string { return base + path + "?" + query.Encode() }

const (
	// azureMetadata is the address of Azure's Instance Metadata Service.
	azureMetadata = "http://169.254.169.254"
	azureService  = "Azure's metadata service"
)

// Azure authenticates by the token that Azure issues to a managed identity.
type Azure struct {
	URL      string // as in https://host/authn-azure/service
	Login    string // of a host, with or without "host/"
	ClientID string // of a user-assigned identity; empty selects the system-assigned one
	Metadata string // URL of the metadata service; empty means azureMetadata
}

// Credential implements conjur.Authenticator.
func (a Azure) Credential(ctx context.Context, _ conjur.Send) (conjur.Credential, error) {
	value, _, err := AzureToken(ctx, a.ClientID, "https://management.azure.com/", a.Metadata)
	if err != nil {
		return conjur.Credential{}, err
	}
	defer value.Wipe()
	if err := checkToken(azureService, value.Bytes()); err != nil {
		return conjur.Credential{}, err
	}
	return conjur.Credential{URL: a.URL, Login: hostLogin(a.Login), ContentType: formType, Body: tokenForm(value.Bytes())}, nil
}

const (
	// gcpMetadata is the address of Google Cloud's metadata service.
	gcpMetadata = "http://metadata.google.internal"
	gcpService  = "Google Cloud's metadata service"
)

// GCP authenticates by the token that Google issues to an instance's service
// account. The token names the host; the request does not.
type GCP struct {
	URL      string // as in https://host/authn-gcp
	Account  string // in Conjur
	Login    string // of a host, with or without "host/"
	Metadata string // URL of the metadata service; empty means gcpMetadata
}

// Credential implements conjur.Authenticator.
func (g GCP) Credential(ctx context.Context, _ conjur.Send) (conjur.Credential, error) {
	// Without the format "full" the token does not describe the instance.
	query := url.Values{"audience": {"conjur/" + g.Account + "/" + hostLogin(g.Login)}, "format": {"full"}}
	base := strings.TrimRight(cmp.Or(g.Metadata, gcpMetadata), "/")
	address := at(base, "/computeMetadata/v1/instance/service-accounts/default/identity", query)
	body, err := askMetadata(ctx, gcpService, address, http.Header{"Metadata-Flavor": {"Google"}})
	if err != nil {
		return conjur.Credential{}, err
	}
	defer clear(body)
	token := bytes.TrimSpace(body)
	if err := checkToken(gcpService, token); err != nil {
		return conjur.Credential{}, err
	}
	return conjur.Credential{URL: g.URL, ContentType: formType, Body: tokenForm(token)}, nil
}

// GCPToken returns an access token of the service account of the Pod or the instance, and
// how long it is valid. An empty metadata means Google Cloud's own address.
func GCPToken(ctx context.Context, metadata string) (secret.Value, time.Duration, error) {
	address := strings.TrimRight(cmp.Or(metadata, gcpMetadata), "/") + "/computeMetadata/v1/instance/service-accounts/default/token"
	body, err := askMetadata(ctx, gcpService, address, http.Header{"Metadata-Flavor": {"Google"}})
	if err != nil {
		return secret.Value{}, 0, err
	}
	return accessToken(gcpService, body)
}

// AzureToken returns an access token of the managed identity for a resource, and how long
// it is valid. An empty metadata means Azure's own address.
func AzureToken(ctx context.Context, clientID, resource, metadata string) (secret.Value, time.Duration, error) {
	query := url.Values{"api-version": {"2018-02-01"}, "resource": {resource}}
	if clientID != "" {
		query.Set("client_id", clientID)
	}
	base := strings.TrimRight(cmp.Or(metadata, azureMetadata), "/")
	body, err := askMetadata(ctx, azureService, at(base, "/metadata/identity/oauth2/token", query), http.Header{"Metadata": {"true"}})
	if err != nil {
		return secret.Value{}, 0, err
	}
	return accessToken(azureService, body)
}

// accessToken reads and clears the answer of a metadata service. Azure writes the number
// of seconds as a text.
func accessToken(service string, body []byte) (secret.Value, time.Duration, error) {
	defer clear(body)
	var answer struct {
		AccessToken string      `json:"access_token"`
		ExpiresIn   json.Number `json:"expires_in"`
	}
	if json.Unmarshal(body, &answer) != nil || answer.AccessToken == "" {
		return secret.Value{}, 0, fmt.Errorf("%s: the answer is not the JSON of a token", service)
	}
	seconds, err := answer.ExpiresIn.Int64()
	if err != nil {
		seconds = 0
	}
	return secret.New([]byte(answer.AccessToken)), time.Duration(min(seconds, 1<<20)) * time.Second, nil
}
