package cloud

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/secretsync/syncer/internal/safefile"
	"github.com/secretsync/syncer/pkg/conjur/authn"
	"github.com/secretsync/syncer/pkg/rotation/actuators"
	"github.com/secretsync/syncer/pkg/rotation/versions"
	"github.com/secretsync/syncer/pkg/secret"
)

// Parts of a version for Azure. The key id names the secret in the application.
const (
	clientID     = "clientId"
	clientSecret = "clientSecret"
	tenantID     = "tenantId"
	keyID        = "keyId"
)

const (
	azureGraph  = "https://graph.microsoft.com"
	azureLogins = "https://login.microsoftonline.com"
)

// Azure are the client secrets of an application.
type Azure struct {
	Application, Tenant string // ids: the client id and the tenant's
	// Validity is when Azure itself ends a secret, counted from its creation.
	Validity time.Duration
	// Admin returns the credentials with which Syncer authenticates, as JSON with
	// tenantId, clientId and clientSecret. nil: by workload identity or the managed
	// identity.
	Admin    func(context.Context) (secret.Value, error)
	Endpoint string       // replaces the URLs of Azure; empty: those
	Client   *http.Client // nil: the default
}

// NewAzure returns the Actuator for the client secrets of an application.
func NewAzure(config Config, a Azure) *Keys {
	azure := &azure{Azure: a, logins: newCaller("Microsoft Entra ID", a.Client, oauthCode)}
	azure.graph = &bearer{caller: newCaller("Microsoft Graph", a.Client, apiCode), get: azure.own}
	return newKeys(config, 2*time.Minute, azure)
}

// Credentials returns those of a version, in the form of Admin.
func (a Azure) Credentials(v versions.Version) secret.Value {
	return secret.New(fmt.Appendf(nil, `{"tenantId":%q,"clientId":%q,"clientSecret":%q}`, a.Tenant, a.Application, v.Parts[clientSecret].Bytes()))
}

// azure is the provider of client secrets. The display name of a secret is its mark.
type azure struct {
	Azure
	graph  *bearer
	logins *caller
}

func (a *azure) holder() string { return "the application " + a.Application }

// limit is below what the manifest of an application can hold.
func (a *azure) limit() int { return 100 }

func (a *azure) marks() bool { return true }

// passwordJSON is a client secret in Microsoft Graph.
type passwordJSON struct {
	KeyID   string     `json:"keyId,omitempty"`
	Name    string     `json:"displayName,omitempty"`
	Created *time.Time `json:"startDateTime,omitempty"`
	Ends    *time.Time `json:"endDateTime,omitempty"`
	Hint    string     `json:"hint,omitempty"` // the first characters of the secret
	Secret  text       `json:"secretText,omitempty"`
}

func (a *azure) at(path string) string {
	return strings.TrimRight(cmp.Or(a.Endpoint, azureGraph), "/") + "/v1.0/applications(appId='" + url.PathEscape(a.Application) + "')" + path
}

func (a *azure) listKeys(ctx context.Context) (keys []key, at time.Time, err error) {
	var answer struct {
		Passwords *[]passwordJSON `json:"passwordCredentials"`
	}
	err = a.graph.call(ctx, "applications.get", http.MethodGet, a.at("?$select=passwordCredentials"), nil, &answer)
	if err != nil {
		return nil, a.graph.now(), err
	}
	if answer.Passwords == nil {
		return nil, a.graph.now(), errors.New("the answer of Microsoft Graph to applications.get contains no list of secrets; Syncer tries again")
	}
	for _, found := range *answer.Passwords {
		keys = append(keys, key{id: found.KeyID, active: true, mark: found.Name, hint: found.Hint})
	}
	return keys, a.graph.now(), err
}

func (a *azure) create(ctx context.Context, v versions.Version) (string, map[string]secret.Value, error) {
	ends := a.graph.now().Add(a.Validity).UTC().Truncate(time.Second)
	in := map[string]passwordJSON{"passwordCredential": {Name: markOf(v), Ends: &ends}}
	var answer passwordJSON
	if err := a.graph.call(ctx, "addPassword", http.MethodPost, a.at("/addPassword"), in, &answer); err != nil {
		return "", nil, err
	}
	if answer.KeyID == "" || len(answer.Secret) == 0 {
		return "", nil, errors.New("the answer of Microsoft Graph to addPassword contains no secret; Syncer tries again")
	}
	parts := a.complete(versions.Version{State: versions.Pending})
	parts[keyID], parts[clientSecret] = secret.New([]byte(answer.KeyID)), secret.New(answer.Secret)
	return answer.KeyID, parts, nil
}

func (a *azure) complete(v versions.Version) map[string]secret.Value {
	lacks := map[string]secret.Value{}
	for name, is := range map[string]string{clientID: a.Application, tenantID: a.Tenant} {
		if v.State == versions.Pending && v.Parts[name].Len() == 0 {
			lacks[name] = secret.New([]byte(is))
		}
	}
	return lacks
}

// disable does nothing: Azure can only remove secrets.
func (a *azure) disable(context.Context, string) (bool, error) { return false, nil }

func (a *azure) remove(ctx context.Context, id string) error {
	err := a.graph.call(ctx, "removePassword", http.MethodPost, a.at("/removePassword"), passwordJSON{KeyID: id}, nil)
	if f, ok := errors.AsType[*fault](err); !ok || f.status != http.StatusBadRequest {
		return err
	}
	keys, _, unknown := a.listKeys(ctx) // the status of a secret that does not exist
	if unknown == nil && !slices.ContainsFunc(keys, func(key key) bool { return key.id == id }) {
		return nil
	}
	return err
}

func (a *azure) keyOf(v versions.Version) string { return string(v.Parts[keyID].Bytes()) }

// lastUsed returns nothing: version 1.0 of Microsoft Graph does not offer it.
func (a *azure) lastUsed(context.Context, string) (time.Time, string, error) {
	return time.Time{}, "", nil
}

func (a *azure) verify(ctx context.Context, v versions.Version) error {
	if has := string(v.Parts[clientID].Bytes()); has != "" && has != a.Application {
		return &strangerError{key: a.keyOf(v), owner: "the application " + has, holder: a.holder()}
	}
	token, _, err := a.login(ctx, a.Tenant, url.Values{"client_id": {a.Application}, "client_secret": {string(v.Parts[clientSecret].Bytes())}})
	token.Wipe()
	if f, ok := errors.AsType[*fault](err); ok && f.invalid() {
		return fmt.Errorf("%w: Azure does not accept the client secret %s (%s): it was removed or has expired", actuators.ErrRefused, a.keyOf(v), f.code)
	}
	return err
}

// login requests a token for Microsoft Graph.
func (a *azure) login(ctx context.Context, tenant string, values url.Values) (secret.Value, time.Duration, error) {
	values.Set("grant_type", "client_credentials")
	values.Set("scope", azureGraph+"/.default")
	host := cmp.Or(a.Endpoint, os.Getenv("AZURE_AUTHORITY_HOST"), azureLogins)
	return exchange(ctx, a.logins, strings.TrimRight(host, "/")+"/"+url.PathEscape(tenant)+"/oauth2/v2.0/token", values)
}

// own returns an access token of this process.
func (a *azure) own(ctx context.Context) (secret.Value, time.Duration, error) {
	if a.Admin != nil {
		value, err := a.Admin(ctx)
		if err != nil {
			return secret.Value{}, 0, err
		}
		defer value.Wipe()
		var has struct{ TenantID, ClientID, ClientSecret string }
		if json.Unmarshal(value.Bytes(), &has) != nil || has.TenantID == "" || has.ClientID == "" || has.ClientSecret == "" {
			return secret.Value{}, 0, errors.New(`the variable that azure.admin names is not {"tenantId":…,"clientId":…,"clientSecret":…}; set it so`)
		}
		return a.login(ctx, has.TenantID, url.Values{"client_id": {has.ClientID}, "client_secret": {has.ClientSecret}})
	}
	file := os.Getenv("AZURE_FEDERATED_TOKEN_FILE")
	if file == "" {
		token, valid, err := authn.AzureToken(ctx, os.Getenv("AZURE_CLIENT_ID"), azureGraph, a.Endpoint)
		return token, valid, explainMissingIdentity(err, "azure")
	}
	assertion, err := safefile.Read(file, 64<<10)
	if err != nil {
		return secret.Value{}, 0, fmt.Errorf("AZURE_FEDERATED_TOKEN_FILE: %w", err)
	}
	defer clear(assertion)
	return a.login(ctx, os.Getenv("AZURE_TENANT_ID"), url.Values{
		"client_id": {os.Getenv("AZURE_CLIENT_ID")}, "client_assertion": {string(assertion)},
		"client_assertion_type": {"urn:ietf:params:oauth:client-assertion-type:jwt-bearer"},
	})
}
