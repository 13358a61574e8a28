package actuators

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/rotation/versions"
	"github.com/secretsync/syncer/pkg/secret"
)

// Parts of an API key's version.
const (
	hostLogin = "login"
	apiKey    = "apiKey"
)

// APIKeys rotates the API keys of Conjur hosts, which take turns. Each host has one
// version at a time, in the parts "login" and "apiKey". Conjur makes the keys and cannot
// store a fence. Therefore the set is read again right before any change, and a key is
// tried before it is refused. The [conjur.SetAnnotation] of a host names the set that
// owns the host.
type APIKeys struct {
	ID     string   // of the set's variable
	Hosts  []string // two or more ids
	Conjur interface {
		RotateKey(ctx context.Context, host string) (secret.Value, error)
		LogIn(ctx context.Context, login string, key secret.Value) error
		HostAnnotations(ctx context.Context, host string) (map[string]string, error)
	}
	Set func(context.Context) (*versions.Document, error) // the caller wipes the result
}

// Check returns the result of Barred. No other problem is visible in advance.
func (a *APIKeys) Check(ctx context.Context, doc *versions.Document) []error {
	return a.Barred(ctx, doc)
}

// Barred returns, for each host that the set may not change, the owner of the host.
func (a *APIKeys) Barred(ctx context.Context, doc *versions.Document) (problems []error) {
	for _, host := range a.Hosts {
		if err := a.barred(ctx, host, doc); err != nil {
			problems = append(problems, err)
		}
	}
	return problems
}

func (a *APIKeys) barred(ctx context.Context, host string, doc *versions.Document) error {
	annotations, err := a.Conjur.HostAnnotations(ctx, host)
	if err != nil {
		return fmt.Errorf("cannot read the annotations of the host %s: %w", host, err)
	}
	set, identity, _ := strings.Cut(annotations[conjur.SetAnnotation], " ")
	if set == "" || set == a.ID && (identity == "" || identity == doc.Identity) {
		return nil
	}
	return fmt.Errorf("the host %s belongs to the set %q by its annotation %s; use another host, or change the annotation in the policy", host, annotations[conjur.SetAnnotation], conjur.SetAnnotation)
}

// Prepare returns the login of the next host. No host may belong to another set.
func (a *APIKeys) Prepare(ctx context.Context, doc *versions.Document) (map[string]secret.Value, error) {
	if problems := a.Barred(ctx, doc); len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	var logins []string
	for _, host := range a.Hosts {
		logins = append(logins, "host/"+host)
	}
	login, err := turn(doc, hostLogin, logins)
	if err != nil {
		return nil, err
	}
	return map[string]secret.Value{hostLogin: secret.New([]byte(login))}, nil
}

// Apply makes an API key, unless the version already has one. From then on Conjur refuses
// the previous key. Nobody has that key: if one exists, the answer to an earlier Apply
// was lost.
func (a *APIKeys) Apply(ctx context.Context, v versions.Version) (map[string]secret.Value, error) {
	if v.Parts[apiKey].Len() > 0 {
		return nil, a.Verify(ctx, v)
	}
	if err := a.still(ctx, v, versions.Pending); err != nil {
		return nil, err
	}
	key, err := a.Conjur.RotateKey(ctx, hostOf(v))
	if err != nil {
		return nil, err
	}
	return map[string]secret.Value{apiKey: key}, nil
}

// Verify logs in.
func (a *APIKeys) Verify(ctx context.Context, v versions.Version) error {
	err := a.Conjur.LogIn(ctx, string(v.Parts[hostLogin].Bytes()), v.Parts[apiKey])
	var answered *conjur.StatusError
	if errors.As(err, &answered) && answered.Status == http.StatusUnauthorized {
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return err
}

// Revoke replaces the host's key with a key that nobody receives. It does so only if the
// host still has the key of this version, or if that is not known.
func (a *APIKeys) Revoke(ctx context.Context, v versions.Version) error {
	if v.Parts[apiKey].Len() > 0 {
		if err := a.Verify(ctx, v); errors.Is(err, ErrRefused) {
			return nil
		} else if err != nil {
			return err
		}
	}
	if err := a.still(ctx, v, versions.Revoking); err != nil {
		return err
	}
	key, err := a.Conjur.RotateKey(ctx, hostOf(v))
	key.Wipe()
	return err
}

// still returns an error if the set's record of a version has changed since the decision
// to act. It also does so if the host belongs to another set.
func (a *APIKeys) still(ctx context.Context, v versions.Version, state versions.State) error {
	doc, err := Still(ctx, a.Set, v, state)
	if err != nil {
		return err
	}
	defer doc.Wipe()
	return a.barred(ctx, hostOf(v), doc)
}

func hostOf(v versions.Version) string {
	const prefix = "host/"
	login := string(v.Parts[hostLogin].Bytes())
	return login[min(len(prefix), len(login)):]
}
