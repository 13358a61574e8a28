package conjurd

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/secretsync/syncer/pkg/conjurd/internal/jwt"
	"github.com/secretsync/syncer/pkg/conjurd/internal/store"
)

// authenticateAzure returns an access token for the host that the path names, if
// the Azure token identifies the machine or identity in the host's annotations.
// Like Conjur, it does not check the token's audience.
func (s *Server) authenticateAzure(c *call) reply {
	a := newAuthenticator(authnAzure, c)
	role := roleOf(a.account, c.vars["login"])
	return s.decide(c, a, role, s.checkAzure(c, a, role))
}

func (s *Server) checkAzure(c *call, a *authenticator, role string) error {
	token, err := jwtOf(c)
	if err != nil {
		return err
	}
	if err := s.view(c.ctx(), a.readSettings); err != nil {
		return err
	}
	provider := strings.TrimRight(a.setting["provider-uri"], "/")
	if provider == "" {
		return errors.New("there is no variable provider-uri")
	}
	claims, err := s.verifyFetched(c.ctx(), token, provider+discovery, "", jwt.Expectation{Issuer: provider + "/"})
	if err != nil {
		return err
	}
	proven, err := azureIdentity(claims)
	if err != nil {
		return err
	}
	return s.admit(c, a, role, func(o *store.Object) error {
		asked, err := a.restrictions(o, "subscription-id", "resource-group", "user-assigned-identity", "system-assigned-identity")
		if err != nil {
			return err
		}
		_, user := asked["user-assigned-identity"]
		_, system := asked["system-assigned-identity"]
		switch {
		case asked["subscription-id"] == "" || asked["resource-group"] == "":
			return errors.New("the host needs the annotations authn-azure/subscription-id and authn-azure/resource-group")
		case user && system:
			return errors.New("the host has annotations both for a user-assigned and a system-assigned identity")
		}
		return match(asked, proven)
	})
}

// azureIdentity reads the caller's identity from the claims oid and xms_mirid. The
// latter is the path of a resource:
//
//	/subscriptions/S/resourcegroups/G/providers/A/B/C
func azureIdentity(claims jwt.Claims) (map[string]string, error) {
	path, _ := claims.Text("xms_mirid")
	object, _ := claims.Text("oid")
	parts := strings.Split(path, "/")
	if len(parts) != 9 || parts[0] != "" || parts[1] != "subscriptions" || !strings.EqualFold(parts[3], "resourcegroups") || parts[5] != "providers" || object == "" {
		return nil, errors.New("the token has no claims oid and xms_mirid of the form that Azure gives machines")
	}
	proven := map[string]string{"subscription-id": parts[2], "resource-group": parts[4]}
	if parts[6] == "Microsoft.ManagedIdentity" {
		proven["user-assigned-identity"] = parts[8]
	} else {
		proven["system-assigned-identity"] = object
	}
	return proven, nil
}

// googleIssuer issues the identity tokens of Google's machines.
const googleIssuer = "https://accounts.google.com"

func (s *Server) googleIssuer() string { return cmp.Or(s.opt.GoogleIssuer, googleIssuer) }

// authenticateGCP returns an access token for the host that the audience of a
// Google token names.
func (s *Server) authenticateGCP(c *call) reply {
	a := newAuthenticator(authnGCP, c)
	role, err := s.checkGCP(c, a)
	return s.decide(c, a, role, err)
}

func (s *Server) checkGCP(c *call, a *authenticator) (role string, err error) {
	token, err := jwtOf(c)
	if err != nil {
		return "", err
	}
	if err := s.view(c.ctx(), a.readSettings); err != nil {
		return "", err
	}
	issuer := s.googleIssuer()
	claims, err := s.verifyFetched(c.ctx(), token, issuer+discovery, "", jwt.Expectation{Issuer: issuer})
	if err != nil {
		return "", err
	}
	audience, _ := claims.Text("aud")
	login, ok := strings.CutPrefix(audience, "conjur/"+a.account+"/")
	if !ok || !strings.HasPrefix(login, "host/") {
		return "", fmt.Errorf("the audience is not of the form conjur/%s/host/ID", a.account)
	}
	proven := map[string]string{}
	for name, claim := range map[string]string{
		"project-id": "google/compute_engine/project_id", "instance-name": "google/compute_engine/instance_name",
		"service-account-id": "sub", "service-account-email": "email",
	} {
		if value, ok := claims.Text(claim); ok {
			proven[name] = value
		}
	}
	role = roleOf(a.account, login)
	return role, s.admit(c, a, role, func(o *store.Object) error {
		asked, err := a.restrictions(o, "project-id", "instance-name", "service-account-id", "service-account-email")
		if err != nil {
			return err
		}
		if asked["project-id"] == "" && asked["service-account-id"] == "" && asked["service-account-email"] == "" {
			return errors.New("the host needs one of the annotations authn-gcp/project-id, service-account-id, service-account-email")
		}
		return match(asked, proven)
	})
}
