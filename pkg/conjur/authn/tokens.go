package authn

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/secretsync/syncer/pkg/secret"
)

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
