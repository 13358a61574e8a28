package kubetest_test

import (
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/secretsync/syncer/test/kubetest"
)

// errNotYet is never nil: not even success is what was waited for.
func errNotYet(err error) error { return fmt.Errorf("not yet; the last outcome was: %v", err) }

func TestTokenClaims(t *testing.T) {
	ns := cluster.Namespace(t)
	cluster.AllowAnonymousDiscovery(t)
	keys := jwks(t)
	for _, test := range []struct{ audiences, want []string }{
		{nil, []string{cluster.URL()}},
		{[]string{"conjur"}, []string{"conjur"}},
		{[]string{"a", "b"}, []string{"a", "b"}},
	} {
		var claims jwt.RegisteredClaims
		_, err := jwt.ParseWithClaims(cluster.Token(t, ns, "app", test.audiences...), &claims, func(token *jwt.Token) (any, error) {
			key, ok := keys[fmt.Sprint(token.Header["kid"])]
			if !ok {
				return nil, errors.New("no such key")
			}
			return key, nil
		}, jwt.WithIssuer(cluster.URL()), jwt.WithSubject(kubetest.UserName(ns, "app")), jwt.WithExpirationRequired())
		if err != nil {
			t.Error(err)
		}
		if !slices.Equal(claims.Audience, test.want) {
			t.Errorf("audiences %v, want %v", claims.Audience, test.want)
		}
		if life := claims.ExpiresAt.Sub(claims.IssuedAt.Time); life != time.Hour {
			t.Errorf("a life of %v, want an hour", life)
		}
	}
}

// jwks are the keys as an outsider reads them, by ID.
func jwks(t *testing.T) map[string]*rsa.PublicKey {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(cluster.CA())
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	defer client.CloseIdleConnections()
	resp, err := client.Get(cluster.JWKSURL())
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var set struct{ Keys []struct{ Kid, N, E string } }
	if err := json.NewDecoder(resp.Body).Decode(&set); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatal(resp.Status, err)
	}
	keys := map[string]*rsa.PublicKey{}
	for _, key := range set.Keys {
		n, errN := base64.RawURLEncoding.DecodeString(key.N)
		e, errE := base64.RawURLEncoding.DecodeString(key.E)
		if err := errors.Join(errN, errE); err != nil {
			t.Fatal(err)
		}
		keys[key.Kid] = &rsa.PublicKey{N: new(big.Int).SetBytes(n), E: int(new(big.Int).SetBytes(e).Int64())}
	}
	return keys
}

func TestTokenIsForItsAudience(t *testing.T) {
	ns := cluster.Namespace(t)
	mine := core(t, cluster.ConfigFor(cluster.Token(t, ns, "app")))
	if _, err := mine.Secrets(ns).List(t.Context(), metav1.ListOptions{}); !refused(err, ns) {
		t.Error(err)
	}
	another := core(t, cluster.ConfigFor(cluster.Token(t, ns, "app", "another")))
	if _, err := another.Secrets(ns).List(t.Context(), metav1.ListOptions{}); !apierrors.IsUnauthorized(err) {
		t.Error(err)
	}
}

// refused reports that the service account app was recognized, and that it may
// not do this.
func refused(err error, ns string) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), kubetest.UserName(ns, "app"))
}

func TestKubeconfigFor(t *testing.T) {
	ns := cluster.Namespace(t)
	config, err := clientcmd.BuildConfigFromFlags("", cluster.KubeconfigFor(t, cluster.Token(t, ns, "app")))
	if err != nil {
		t.Fatal(err)
	}
	if _, err = core(t, config).Secrets(ns).List(t.Context(), metav1.ListOptions{}); !refused(err, ns) {
		t.Error(err)
	}
}
