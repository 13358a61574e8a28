package authn

import (
	"context"

	"github.com/secretsync/syncer/pkg/conjur"
)

// JWT authenticates by a JSON Web Token, such as a Kubernetes service account
// token.
type JWT struct {
	URL       string // as in https://host/authn-jwt/service
	TokenPath string // path of the file with the token
	Login     string // usually empty, because the token names the identity
}

// Credential implements conjur.Authenticator.
func (j JWT) Credential(context.Context, conjur.Send) (conjur.Credential, error) {
	token, err := readWord("JWT", j.TokenPath)
	if err != nil {
		return conjur.Credential{}, err
	}
	defer clear(token)
	return conjur.Credential{URL: j.URL, Login: j.Login, ContentType: formType, Body: tokenForm(token)}, nil
}
