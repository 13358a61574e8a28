package authn

import (
	"bytes"
	"cmp"
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/secretsync/syncer/pkg/conjur"
)

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
