package authn

import (
	"context"

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
