package cloud

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/secretsync/syncer/pkg/rotation/actuators"
	"github.com/secretsync/syncer/pkg/rotation/versions"
	"github.com/secretsync/syncer/pkg/secret"
)

// googleKey is the part of a version for Google Cloud: the file key.json. The name of a
// part has no dot.
const googleKey = "key"

const (
	googleIAM    = "https://iam.googleapis.com"
	googleTokens = "https://oauth2.googleapis.com/token"
	googleUses   = "https://policyanalyzer.googleapis.com"
	googleScope  = "https://www.googleapis.com/auth/cloud-platform"
)

// GCP are the keys of a service account of Google Cloud.
type GCP struct {
	Account string // its email address
	Project string // its project; empty: that of the address
	// Admin returns the credentials of Syncer: a key file, or an external_account. nil: as
	// GOOGLE_APPLICATION_CREDENTIALS says, or by the account of the Pod or the instance.
	Admin    func(context.Context) (secret.Value, error)
	Endpoint string       // replaces the URLs of Google Cloud; empty: those
	Client   *http.Client // nil: the default
}

// NewGCP returns the Actuator for the keys of a service account.
func NewGCP(config Config, g GCP) *Keys {
	if g.Project == "" {
		g.Project = projectOf(g.Account)
	}
	google := &google{GCP: g, tokens: newCaller("Google's token service", g.Client, oauthCode), asks: config.Unused > 0}
	google.iam = &bearer{caller: newCaller("Google Cloud IAM", g.Client, apiCode), get: google.own}
	google.uses = &bearer{caller: newCaller("Google Cloud's Policy Analyzer", g.Client, apiCode), get: google.own}
	return newKeys(config, 2*time.Minute, google)
}

// projectOf returns the project in the address of an account. "-" lets Google Cloud find
// the project of other forms, such as those of default accounts.
func projectOf(account string) string {
	_, host, _ := strings.Cut(account, "@")
	project, own := strings.CutSuffix(host, ".iam.gserviceaccount.com")
	if !own || strings.Contains(project, ".") {
		return "-"
	}
	return project
}

// GoogleCredentials returns the key file of a version.
func GoogleCredentials(v versions.Version) secret.Value { return clone(v.Parts[googleKey]) }

// google is the provider of keys of a service account.
type google struct {
	GCP
	iam, uses *bearer
	tokens    *caller
	asks      bool
}

func (g *google) holder() string { return "the service account " + g.Account }

func (g *google) limit() int { return 10 }

func (g *google) marks() bool { return false }

// at returns the URL below a service; the endpoint, if set, replaces all services.
func (g *google) at(service, path string) string {
	return strings.TrimRight(cmp.Or(g.Endpoint, service), "/") + path
}

func (g *google) account() string {
	return "/v1/projects/" + url.PathEscape(g.Project) + "/serviceAccounts/" + url.PathEscape(g.Account)
}

func (g *google) listKeys(ctx context.Context) (keys []key, at time.Time, err error) {
	var answer struct {
		Keys []struct {
			Name     string    `json:"name"`
			Created  time.Time `json:"validAfterTime"`
			Disabled bool      `json:"disabled"`
			Origin   string    `json:"keyOrigin"`
		} `json:"keys"`
	}
	err = g.iam.call(ctx, "keys.list", http.MethodGet, g.at(googleIAM, g.account()+"/keys?keyTypes=USER_MANAGED"), nil, &answer)
	for _, found := range answer.Keys {
		keys = append(keys, key{id: path.Base(found.Name), created: found.Created, active: !found.Disabled, uploaded: found.Origin == "USER_PROVIDED"})
	}
	return keys, g.iam.now(), err
}

func (g *google) create(ctx context.Context, _ versions.Version) (string, map[string]secret.Value, error) {
	var answer struct {
		Name string `json:"name"`
		Data []byte `json:"privateKeyData"` // base64
	}
	in := map[string]string{"privateKeyType": "TYPE_GOOGLE_CREDENTIALS_FILE", "keyAlgorithm": "KEY_ALG_RSA_2048"}
	if err := g.iam.call(ctx, "keys.create", http.MethodPost, g.at(googleIAM, g.account()+"/keys"), in, &answer); err != nil {
		return "", nil, err
	}
	if answer.Name == "" || len(answer.Data) == 0 {
		return "", nil, errors.New("the answer of Google Cloud IAM to keys.create contains no key; Syncer tries again")
	}
	return path.Base(answer.Name), map[string]secret.Value{googleKey: secret.New(answer.Data)}, nil
}

func (g *google) complete(versions.Version) map[string]secret.Value {
	return map[string]secret.Value{}
}

func (g *google) disable(ctx context.Context, id string) (bool, error) {
	return true, g.iam.call(ctx, "keys.disable", http.MethodPost, g.at(googleIAM, g.account()+"/keys/"+url.PathEscape(id)+":disable"), struct{}{}, nil)
}

func (g *google) remove(ctx context.Context, id string) error {
	return g.iam.call(ctx, "keys.delete", http.MethodDelete, g.at(googleIAM, g.account()+"/keys/"+url.PathEscape(id)), nil, nil)
}

// keyFile is the content of a key file that Syncer needs.
type keyFile struct {
	Email   string `json:"client_email"`
	ID      string `json:"private_key_id"`
	Private text   `json:"private_key"`
}

// fileOf returns the key file of a version, without its private key.
func fileOf(v versions.Version) (file keyFile) {
	if json.Unmarshal(v.Parts[googleKey].Bytes(), &file) != nil {
		return keyFile{}
	}
	clear(file.Private)
	return keyFile{Email: file.Email, ID: file.ID}
}

func (g *google) keyOf(v versions.Version) string { return fileOf(v).ID }

// lastUsed asks the Policy Analyzer, whose data is a day or two old.
func (g *google) lastUsed(ctx context.Context, id string) (time.Time, string, error) {
	if !g.asks {
		return time.Time{}, "", nil
	}
	name := fmt.Sprintf("//iam.googleapis.com/projects/%s/serviceAccounts/%s/keys/%s", g.Project, g.Account, id)
	query := url.Values{"filter": {fmt.Sprintf("activities.full_resource_name=%q", name)}}
	var answer struct {
		Activities []struct {
			Activity struct {
				At time.Time `json:"lastAuthenticatedTime"`
			} `json:"activity"`
		} `json:"activities"`
	}
	to := "/v1/projects/" + url.PathEscape(g.Project) + "/locations/global/activityTypes/serviceAccountKeyLastAuthentication/activities:query?" + query.Encode()
	err := g.uses.call(ctx, "activities.query", http.MethodGet, g.at(googleUses, to), nil, &answer)
	var last time.Time
	for _, a := range answer.Activities {
		if a.Activity.At.After(last) {
			last = a.Activity.At
		}
	}
	if last.IsZero() {
		return last, "", err
	}
	return last.Add(-g.uses.skew), "", err
}

func (g *google) verify(ctx context.Context, v versions.Version) error {
	if file := fileOf(v); file.Email != g.Account {
		return &strangerError{key: file.ID, owner: "the service account " + file.Email, holder: g.holder()}
	}
	token, _, err := g.token(ctx, v.Parts[googleKey])
	token.Wipe()
	if f, ok := errors.AsType[*fault](err); ok && f.invalid() {
		return fmt.Errorf("%w: Google does not accept the key %s (%s): it was disabled or deleted", actuators.ErrRefused, g.keyOf(v), f.code)
	}
	return err
}

// token exchanges a key file for an access token. If the clock of this process is wrong,
// it signs again with the service's time.
func (g *google) token(ctx context.Context, value secret.Value) (secret.Value, time.Duration, error) {
	var file keyFile
	if json.Unmarshal(value.Bytes(), &file) != nil {
		return secret.Value{}, 0, errors.New("the key is not a key file of a service account; set the variable to the whole key.json")
	}
	defer clear(file.Private)
	private, err := jwt.ParseRSAPrivateKeyFromPEM(file.Private)
	if err != nil {
		return secret.Value{}, 0, errors.New("the key file of the service account has no RSA key in PEM; set the variable to the whole key.json")
	}
	for again := true; ; again = false {
		now, skew := g.tokens.now(), g.tokens.skew
		claims := jwt.MapClaims{"iss": file.Email, "scope": googleScope, "aud": googleTokens, "iat": now.Unix(), "exp": now.Add(5 * time.Minute).Unix()}
		signed := jwt.NewWithClaims(jwt.SigningMethodRS256, claims)
		signed.Header["kid"] = file.ID
		assertion, err := signed.SignedString(private)
		if err != nil {
			return secret.Value{}, 0, errors.New("the request for a token cannot be signed with the key of the service account")
		}
		to := googleTokens
		if g.Endpoint != "" {
			to = g.at("", "/token")
		}
		token, valid, err := exchange(ctx, g.tokens, to, url.Values{"grant_type": {"urn:ietf:params:oauth:grant-type:jwt-bearer"}, "assertion": {assertion}})
		if f, ok := errors.AsType[*fault](err); again && ok && f.skewed() && (g.tokens.skew-skew).Abs() > time.Minute {
			continue
		}
		return token, valid, err
	}
}

// permitted returns which permissions Syncer lacks. It changes nothing.
func (g *google) permitted(ctx context.Context) error {
	needs := []string{"iam.serviceAccountKeys.create", "iam.serviceAccountKeys.delete", "iam.serviceAccountKeys.disable", "iam.serviceAccountKeys.list"}
	var has struct{ Permissions []string }
	if err := g.iam.call(ctx, "testIamPermissions", http.MethodPost, g.at(googleIAM, g.account()+":testIamPermissions"), map[string][]string{"permissions": needs}, &has); err != nil {
		return err
	}
	lacks := slices.DeleteFunc(needs, func(p string) bool { return slices.Contains(has.Permissions, p) })
	if len(lacks) == 0 {
		return nil
	}
	return fmt.Errorf("the identity of Syncer lacks %s on %s; grant a role with them, as \"syncer rotate init\" prints it", strings.Join(lacks, ", "), g.holder())
}
