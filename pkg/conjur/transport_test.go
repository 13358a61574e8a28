package conjur_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/conjur/authn"
	"github.com/secretsync/syncer/pkg/conjur/conjurtest"
	"github.com/secretsync/syncer/pkg/secret"
	"github.com/secretsync/syncer/test/proctest"
)

// newCertificate makes a self-signed certificate for 127.0.0.1.
func newCertificate(t *testing.T, serial int64) (tls.Certificate, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key},
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func TestChangedCAFileIsUsedAndABrokenOneIsNot(t *testing.T) {
	first, firstPEM := newCertificate(t, 1)
	second, secondPEM := newCertificate(t, 2)
	var served atomic.Pointer[tls.Certificate]
	served.Store(&first)

	d := conjurtest.New()
	d.Set("app/a", "v")
	s := httptest.NewUnstartedServer(d)
	s.Config.ErrorLog = conjurtest.NoLog()
	s.TLS = &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		return &tls.Config{Certificates: []tls.Certificate{*served.Load()}}, nil
	}}
	s.StartTLS()
	defer s.Close()

	path := filepath.Join(t.TempDir(), "ca.pem")
	put := func(content []byte) { // as the kubelet does: a new file takes the name
		tmp := path + ".new"
		if err := os.WriteFile(tmp, content, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(tmp, path); err != nil {
			t.Fatal(err)
		}
	}
	put(firstPEM)
	core, logs := observer.New(zapcore.WarnLevel)
	c := client(t, conjur.Config{
		ApplianceURL: s.URL, Account: conjurtest.Account, CAFile: path, Logger: zap.New(core),
		Authenticator: authn.APIKey{Login: conjurtest.Login, Key: secret.New([]byte(conjurtest.APIKey))},
	}, nil)
	wantFound(t, fetch(t, c, "app/a"), "v")

	put([]byte("broken"))
	for range 3 {
		wantFound(t, fetch(t, c, "app/a"), "v")
	}
	if logs.Len() != 1 || !strings.Contains(logs.All()[0].Message, "not usable") {
		t.Errorf("the broken file is to be reported once: %v", logs.All())
	}

	served.Store(&second)
	s.CloseClientConnections()
	wantUnknown(t, fetch(t, c, "app/a"))
	put(secondPEM)
	wantFound(t, fetch(t, c, "app/a"), "v")

	served.Store(&first)
	s.CloseClientConnections()
	wantUnknown(t, fetch(t, c, "app/a"))
	put(firstPEM)
	wantFound(t, fetch(t, c, "app/a"), "v")
}

// Any change of the file that stat shows is taken up, though the connection
// that there is works; what is the same as before is no change.
func TestCAFileIsTakenUpBeforeItIsNeeded(t *testing.T) {
	certificate, firstPEM := newCertificate(t, 1)
	firstPEM = append(firstPEM, '\n')
	otherPEM := append(slices.Clone(firstPEM[:len(firstPEM)-1]), ' ') // of the same size
	longerPEM := append(slices.Clone(firstPEM), '\n')
	d := conjurtest.New()
	d.Set("app/a", "v")
	var connections, ended atomic.Int64
	s := httptest.NewUnstartedServer(d)
	s.Config.ErrorLog = conjurtest.NoLog()
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			connections.Add(1)
		case http.StateClosed:
			ended.Add(1)
		}
	}
	s.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}}
	s.StartTLS()
	defer s.Close()

	path, at := filepath.Join(t.TempDir(), "ca.pem"), time.Now()
	write := func(path string, content []byte, at time.Time) {
		if err := errors.Join(os.WriteFile(path, content, 0o600), os.Chtimes(path, at, at)); err != nil {
			t.Fatal(err)
		}
	}
	write(path, firstPEM, at)
	core, logs := observer.New(zapcore.InfoLevel)
	c := client(t, conjur.Config{
		ApplianceURL: s.URL, Account: conjurtest.Account, CAFile: path, Logger: zap.New(core),
		Authenticator: authn.APIKey{Login: conjurtest.Login, Key: secret.New([]byte(conjurtest.APIKey))},
	}, nil)
	wantFound(t, fetch(t, c, "app/a"), "v")
	for _, change := range []struct {
		what string
		do   func()
		used bool
	}{
		{"another time", func() { write(path, otherPEM, at.Add(time.Second)) }, true},
		{"another size", func() { write(path, longerPEM, at.Add(time.Second)) }, true},
		{"another file", func() {
			write(path+".new", append(slices.Clone(longerPEM[:len(longerPEM)-1]), ' '), at.Add(time.Second))
			if err := os.Rename(path+".new", path); err != nil {
				t.Fatal(err)
			}
		}, true},
		{"broken", func() { write(path, []byte("broken"), at) }, false},
		{"put right", func() { write(path, append(slices.Clone(longerPEM[:len(longerPEM)-1]), ' '), at) }, false},
	} {
		logs.TakeAll()
		before := connections.Load()
		change.do()
		wantFound(t, fetch(t, c, "app/a"), "v")
		if used := logs.FilterMessageSnippet("The changed CA certificate file is in use").Len() > 0; used != change.used {
			t.Errorf("%s: said to be in use: %v, want %v", change.what, used, change.used)
		}
		if anew := connections.Load() > before; anew != change.used {
			t.Errorf("%s: connected anew: %v, want %v", change.what, anew, change.used)
		}
		proctest.Eventually(t, change.what+": the connections from before closed", func() bool { return ended.Load() == connections.Load()-1 })
	}
}

// A file that is rewritten in place may look the same to stat; its content is
// looked at when the certificate is not trusted.
func TestCAFileThatChangedUnseen(t *testing.T) {
	first, firstPEM := newCertificate(t, 1)
	_, otherPEM := newCertificate(t, 2)
	d := conjurtest.New()
	d.Set("app/a", "v")
	s := httptest.NewUnstartedServer(d)
	s.Config.ErrorLog = conjurtest.NoLog()
	s.TLS = &tls.Config{Certificates: []tls.Certificate{first}}
	s.StartTLS()
	defer s.Close()

	size := max(len(firstPEM), len(otherPEM))
	path, at := filepath.Join(t.TempDir(), "ca.pem"), time.Now()
	put := func(content []byte) {
		padded := append(content, strings.Repeat("\n", size-len(content))...)
		if err := os.WriteFile(path, padded, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	put(otherPEM)
	c := client(t, conjur.Config{
		ApplianceURL: s.URL, Account: conjurtest.Account, CAFile: path,
		Authenticator: authn.APIKey{Login: conjurtest.Login, Key: secret.New([]byte(conjurtest.APIKey))},
	}, nil)
	wantUnknown(t, fetch(t, c, "app/a"))
	put(firstPEM)
	for a := fetch(t, c, "app/a"); a.Form != conjur.Given; a = fetch(t, c, "app/a") {
		if t.Context().Err() != nil {
			t.Fatal(a.Err)
		}
		time.Sleep(time.Millisecond) // until the rest after the failed login is over
	}
}

func TestUnreadableCAFile(t *testing.T) {
	_, err := conjur.New(conjur.Config{
		ApplianceURL: "https://h", Account: conjurtest.Account, CAFile: filepath.Join(t.TempDir(), "none"),
		Authenticator: authn.APIKey{Login: conjurtest.Login, Key: secret.New([]byte(conjurtest.APIKey))},
	})
	if err == nil || !strings.Contains(err.Error(), "CA certificate") {
		t.Errorf("got %v", err)
	}
}

func TestRedirectIsNotFollowed(t *testing.T) {
	other := conjurtest.New()
	elsewhere := httptest.NewServer(other)
	defer elsewhere.Close()
	d := conjurtest.New()
	d.Set("app/a", "v")
	d.Intercept = func(w http.ResponseWriter, r *http.Request, kind conjur.Kind) bool {
		if kind == conjur.KindAuthenticate {
			return false
		}
		http.Redirect(w, r, elsewhere.URL+r.RequestURI, http.StatusFound)
		return true
	}
	c := start(t, d, nil)
	wantUnknown(t, fetch(t, c, "app/a"))
	if log := other.Log(); len(log) != 0 {
		t.Errorf("%d requests went elsewhere", len(log))
	}
}

func TestServerWithoutTLS12IsRefused(t *testing.T) {
	d := conjurtest.New()
	d.Set("app/a", "v")
	s := httptest.NewUnstartedServer(d)
	s.Config.ErrorLog = conjurtest.NoLog()
	s.TLS = &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}
	s.StartTLS()
	defer s.Close()
	c := client(t, conjur.Config{
		ApplianceURL: s.URL, Account: conjurtest.Account, CA: conjurtest.Certificate(s),
		Authenticator: authn.APIKey{Login: conjurtest.Login, Key: secret.New([]byte(conjurtest.APIKey))},
	}, nil)
	wantUnknown(t, fetch(t, c, "app/a"))
}

// cutShort answers a read of one variable with the headers that belong to the
// whole value and less than the whole, over a connection whose end is the only
// mark of the body's.
func cutShort(body, etag string) func(http.ResponseWriter, *http.Request, conjur.Kind) bool {
	return func(w http.ResponseWriter, _ *http.Request, kind conjur.Kind) bool {
		if kind != conjur.KindVariable {
			return false
		}
		c, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(err)
		}
		defer c.Close()
		fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Disposition: attachment\r\nContent-Transfer-Encoding: binary\r\n"+
			"ETag: %s\r\nConnection: close\r\n\r\n%s", etag, body)
		return true
	}
}

// A value that a broken connection ended is not the variable's, and its ETag
// must not have every later poll confirm it.
func TestValueThatTheEndOfAConnectionCut(t *testing.T) {
	const id = "app/com,ma"
	d := conjurtest.New()
	d.Set(id, "whole")
	d.SetIntercept(cutShort("who", conjurtest.ETag("whole")))
	c := start(t, d, nil)
	wantUnknown(t, fetch(t, c, id))
	d.SetIntercept(cutShort("whole", conjurtest.ETag("whole")))
	wantFound(t, fetch(t, c, id), "whole")
}

// A token is short, whatever comes instead of one.
func TestLongAnswerToALoginIsNotRead(t *testing.T) {
	d := conjurtest.New()
	d.Set("app/a", "v")
	d.Intercept = func(w http.ResponseWriter, _ *http.Request, kind conjur.Kind) bool {
		if kind == conjur.KindAuthenticate {
			fmt.Fprintf(w, `{"protected":"%s"}`, strings.Repeat("A", 2<<20))
		}
		return kind == conjur.KindAuthenticate
	}
	a := fetch(t, start(t, d, nil), "app/a")
	wantUnknown(t, a)
	if !strings.Contains(a.Err.Error(), "longer than the limit of 1048576 bytes") {
		t.Error(a.Err)
	}
}
