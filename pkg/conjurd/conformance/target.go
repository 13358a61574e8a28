// Package conformance is a suite of the observed behavior of a Conjur server. It
// runs over HTTP against any server: the genuine one, or ours.
package conformance

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
)

// Target is a server and the account in which the suite may work. The suite creates
// a policy "syncer-conformance" there, and deletes it.
type Target struct {
	URL     string // without a trailing slash
	CA      []byte // PEM; nil means the system's roots
	Account string
	Login   string // of a user who may load the root policy
	APIKey  string
	// Ours means that the server is conjurd in strict mode. Its answers differ
	// where a case says so.
	Ours bool
	// JWT permits the suite to configure a JWT authenticator.
	JWT bool
	// Workloads is nil if the server uses the real clouds. The suite then omits the
	// cases that need fakes.
	Workloads *Workloads
}

// FromEnv returns the target in the environment: SYNCER_CONJUR_URL,
// SYNCER_CONJUR_ACCOUNT, SYNCER_CONJUR_LOGIN ("admin" if empty) and
// SYNCER_CONJUR_API_KEY. SYNCER_CONJUR_CA_FILE is needed unless the system trusts
// the server. SYNCER_CONJUR_JWT, with any text, permits a JWT authenticator.
// FromEnv returns false if there is no URL.
func FromEnv() (Target, bool, error) {
	t := Target{
		JWT: os.Getenv("SYNCER_CONJUR_JWT") != "",
		URL: os.Getenv("SYNCER_CONJUR_URL"), Account: os.Getenv("SYNCER_CONJUR_ACCOUNT"),
		Login: os.Getenv("SYNCER_CONJUR_LOGIN"), APIKey: os.Getenv("SYNCER_CONJUR_API_KEY"),
	}
	if t.URL == "" {
		return t, false, nil
	}
	if t.Login == "" {
		t.Login = "admin"
	}
	var faults []error
	if t.Account == "" {
		faults = append(faults, errors.New("SYNCER_CONJUR_ACCOUNT is not set"))
	}
	if t.APIKey == "" {
		faults = append(faults, errors.New("SYNCER_CONJUR_API_KEY is not set"))
	}
	if file := os.Getenv("SYNCER_CONJUR_CA_FILE"); file != "" {
		ca, err := os.ReadFile(file)
		if err != nil {
			faults = append(faults, fmt.Errorf("SYNCER_CONJUR_CA_FILE: %w", err))
		}
		t.CA = ca
	}
	return t, true, errors.Join(faults...)
}

// client trusts the target and does not alter requests or answers. The certificate
// may be nil.
func (t Target) client(certificate *tls.Certificate) *http.Client {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if t.CA != nil {
		config.RootCAs = x509.NewCertPool()
		config.RootCAs.AppendCertsFromPEM(t.CA)
	}
	if certificate != nil { // regardless of the authorities that the server names
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return certificate, nil }
	}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: config, DisableCompression: true}}
}
