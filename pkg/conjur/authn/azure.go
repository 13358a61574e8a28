package authn

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/secretsync/syncer/pkg/conjur"
)

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
	query := url.Values{"api-version": {"2018-02-01"}, "resource": {"https://management.azure.com/"}}
	if a.ClientID != "" {
		query.Set("client_id", a.ClientID)
	}
	base := strings.TrimRight(cmp.Or(a.Metadata, azureMetadata), "/")
	body, err := askMetadata(ctx, azureService, at(base, "/metadata/identity/oauth2/token", query), http.Header{"Metadata": {"true"}})
	if err != nil {
		return conjur.Credential{}, err
	}
	defer clear(body)
	var answer struct {
		AccessToken string `json:"access_token"`
	}
	if json.Unmarshal(body, &answer) != nil {
		return conjur.Credential{}, fmt.Errorf("%s: the answer is not the JSON of a token", azureService)
	}
	token := []byte(answer.AccessToken)
	defer clear(token)
	if err := checkToken(azureService, token); err != nil {
		return conjur.Credential{}, err
	}
	return conjur.Credential{URL: a.URL, Login: hostLogin(a.Login), ContentType: formType, Body: tokenForm(token)}, nil
}
