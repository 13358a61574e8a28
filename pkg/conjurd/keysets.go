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
	keySetLife    = 5 * time.Minute  // age after which a set is fetched again
	keySetPause   = 5 * time.Second  // between two fetches, even if the first failed
	keySetTimeout = 10 * time.Second // for one fetch
	maxKeySet     = 1 << 20
)

// keySets fetches the keys behind jwks-uri and caches them. Anybody can cause a
// fetch by sending a JWT. Therefore one fetch of a set runs at a time, and failures
// are cached too.
type keySets struct {
	now func() time.Time

	mu   sync.Mutex
	sets map[string]*keySet // URI and CA → keys
}

// keySet is the cached state of one set.
type keySet struct {
	fetching chan struct{} // fetch slot; has room for one

	// Guarded by keySets.mu.
	keys    jwt.Keys
	fetched time.Time // when keys were fetched
	err     error     // result and time of the last attempt
	tried   time.Time
}

func newKeySets(now func() time.Time) *keySets {
	return &keySets{now: now, sets: map[string]*keySet{}}
}

// get returns the keys. ca is PEM, or empty for the system's roots.
func (k *keySets) get(ctx context.Context, uri, ca string) (jwt.Keys, error) {
	return k.notOlder(ctx, uri, ca, keySetLife)
}

// renew fetches again if the keys from get lack the wanted one.
func (k *keySets) renew(ctx context.Context, uri, ca string) (jwt.Keys, error) {
	return k.notOlder(ctx, uri, ca, keySetPause)
}

func (k *keySets) notOlder(ctx context.Context, uri, ca string, age time.Duration) (jwt.Keys, error) {
	set := k.set(uri + "\x00" + ca)
	if keys, err := k.known(set, age); keys != nil || err != nil {
		return keys, err
	}
	select {
	case set.fetching <- struct{}{}:
		defer func() { <-set.fetching }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if keys, err := k.known(set, age); keys != nil || err != nil {
		return keys, err // another caller fetched them meanwhile
	}
	// Other callers wait for this fetch, so it continues if this caller leaves.
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

// known returns recent keys, or else a recent failure. It returns nil for both if a
// fetch is due.
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
		k.sets[name] = &keySet{fetching: make(chan struct{}, 1)}
	}
	return k.sets[name]
}

// discovery is the path at which an OpenID Connect issuer publishes the location of
// its keys.
const discovery = "/.well-known/openid-configuration"

// fetchKeys fetches the key set at a URI, or the set that an issuer's discovery
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
