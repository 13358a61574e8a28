package conjurd

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/secretsync/syncer/pkg/conjurd/internal/jwt"
)

const (
	keySetLife    = 5 * time.Minute  // after that it is fetched anew
	keySetPause   = 5 * time.Second  // between two fetches, whatever came of the first
	keySetTimeout = 10 * time.Second // of one fetch
	maxKeySet     = 1 << 20
)

// keySets fetches the keys behind jwks-uri and keeps them for a while. Anybody
// can have a set fetched by sending a JWT, so there is one fetch of a set at a
// time, and a failure is kept for a while too.
type keySets struct {
	now func() time.Time

	mu   sync.Mutex
	sets map[string]*keySet // :: URI and CA → keys
}

// keySet is what is known of one set.
type keySet struct {
	turn chan struct{} // to fetch; has room for one

	// Guarded by keySets.mu.
	keys    jwt.Keys
	fetched time.Time // when the keys were
	err     error     // what came of the last try, and when that was
	tried   time.Time
}

func newKeySets(now func() time.Time) *keySets {
	return &keySets{now: now, sets: map[string]*keySet{}}
}

// get returns the keys; ca is PEM, or empty for the system's roots.
func (k *keySets) get(ctx context.Context, uri, ca string) (jwt.Keys, error) {
	return k.notOlder(ctx, uri, ca, keySetLife)
}

// renew is get for when a key is missing from what get returned.
func (k *keySets) renew(ctx context.Context, uri, ca string) (jwt.Keys, error) {
	return k.notOlder(ctx, uri, ca, keySetPause)
}

func (k *keySets) notOlder(ctx context.Context, uri, ca string, age time.Duration) (jwt.Keys, error) {
	set := k.set(uri + "\x00" + ca)
	if keys, err := k.known(set, age); keys != nil || err != nil {
		return keys, err
	}
	select {
	case set.turn <- struct{}{}:
		defer func() { <-set.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if keys, err := k.known(set, age); keys != nil || err != nil {
		return keys, err // somebody else fetched them meanwhile
	}
	// Others wait for this too, so it goes on when the caller has left.
	keys, err := fetchKeys(context.WithoutCancel(ctx), uri, ca)
	k.mu.Lock()
	defer k.mu.Unlock()
	set.tried, set.err = k.now(), nil
	if err != nil {
		set.err = fmt.Errorf("jwks-uri: %w", err)
		return nil, set.err
	}
	set.keys, set.fetched = keys, set.tried
	return keys, nil
}

// known returns keys that are young enough, or else a failure that is; nil
// both when it is time to fetch.
func (k *keySets) known(set *keySet, age time.Duration) (jwt.Keys, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.now()
	switch {
	case set.keys != nil && now.Sub(set.fetched) < age:
		return set.keys, nil
	case set.err != nil && now.Sub(set.tried) < keySetPause:
		return nil, set.err
	}
	return nil, nil
}

func (k *keySets) set(name string) *keySet {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.sets[name] == nil {
		k.sets[name] = &keySet{turn: make(chan struct{}, 1)}
	}
	return k.sets[name]
}

// discovery is where an issuer of OpenID Connect says where its keys are.
const discovery = "/.well-known/openid-configuration"

// fetchKeys gets the key set at a URI, or the one that an issuer's discovery
// document at the URI names.
func fetchKeys(ctx context.Context, uri, ca string) (jwt.Keys, error) {
	ctx, cancel := context.WithTimeout(ctx, keySetTimeout)
	defer cancel()
	body, err := fetch(ctx, uri, ca)
	if err == nil && strings.HasSuffix(uri, discovery) {
		var document struct {
			KeySet string `json:"jwks_uri"`
		}
		if json.Unmarshal(body, &document) != nil || document.KeySet == "" {
			return nil, fmt.Errorf("%s names no jwks_uri", uri)
		}
		body, err = fetch(ctx, document.KeySet, ca)
	}
	if err != nil {
		return nil, err
	}
	return jwt.ParseJWKS(body)
}

func fetch(ctx context.Context, uri, ca string) ([]byte, error) {
	transport := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}}
	if ca != "" {
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM([]byte(ca)) {
			return nil, errors.New("ca-cert holds no certificate in PEM")
		}
		transport.TLSClientConfig.RootCAs = pool
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, uri, nil)
	if err != nil {
		return nil, err
	}
	res, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers %s", uri, res.Status)
	}
	return io.ReadAll(io.LimitReader(res.Body, maxKeySet))
}
