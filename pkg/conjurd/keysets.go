package conjurd

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/secretsync/syncer/pkg/conjurd/internal/jwt"
)

const (
	keySetLife    = 5 * time.Minute  // after that it is fetched anew
	keySetPause   = 5 * time.Second  // between two fetches for unknown keys
	keySetTimeout = 10 * time.Second // of one fetch
	maxKeySet     = 1 << 20
)

// keySets fetches the keys behind jwks-uri and keeps them for a while.
type keySets struct {
	now func() time.Time

	mu   sync.Mutex
	sets map[string]keySet // :: URI and CA → keys
}

type keySet struct {
	keys    jwt.Keys
	fetched time.Time
}

func newKeySets(now func() time.Time) *keySets {
	return &keySets{now: now, sets: map[string]keySet{}}
}

// get gives the keys; ca is PEM, or empty for the system's roots.
func (k *keySets) get(ctx context.Context, uri, ca string) (jwt.Keys, error) {
	return k.notOlder(ctx, uri, ca, keySetLife)
}

// renew is get for when a key is missing from what get gave.
func (k *keySets) renew(ctx context.Context, uri, ca string) (jwt.Keys, error) {
	return k.notOlder(ctx, uri, ca, keySetPause)
}

func (k *keySets) notOlder(ctx context.Context, uri, ca string, age time.Duration) (jwt.Keys, error) {
	k.mu.Lock()
	set, ok := k.sets[uri+"\x00"+ca]
	k.mu.Unlock()
	if ok && k.now().Sub(set.fetched) < age {
		return set.keys, nil
	}
	keys, err := fetchKeys(ctx, uri, ca)
	if err != nil {
		return nil, fmt.Errorf("jwks-uri: %w", err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.sets[uri+"\x00"+ca] = keySet{keys, k.now()}
	return keys, nil
}

func fetchKeys(ctx context.Context, uri, ca string) (jwt.Keys, error) {
	ctx, cancel := context.WithTimeout(ctx, keySetTimeout)
	defer cancel()
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
	body, err := io.ReadAll(io.LimitReader(res.Body, maxKeySet))
	if err != nil {
		return nil, err
	}
	return jwt.ParseJWKS(body)
}
