// Package conformance holds what a Conjur server was seen to do, as a suite
// that runs over HTTP against any server: the genuine one, or ours.
package conformance

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
)

// Target is a server and the account on it in which the suite may work. The
// suite makes a policy "syncer-conformance" there, and deletes it.
type Target struct {
	URL     string // without a slash at the end
	CA      []byte // PEM; nil: the system's roots
	Account string
	Login   string // of a user who may load the root policy
	APIKey  string
	// Ours says that the server is conjurd in its strict form, which differs
	// where a case says so.
	Ours bool
	// JWT says that the server lets the suite set up a JWT authenticator.
	JWT bool
	// Workloads is nil when the server asks the real clouds: then the suite
	// leaves out what needs them.
	Workloads *Workloads
}

// FromEnv returns the target that the environment names: SYNCER_CONJUR_URL,
// SYNCER_CONJUR_ACCOUNT, SYNCER_CONJUR_LOGIN ("admin" if empty),
// SYNCER_CONJUR_API_KEY, SYNCER_CONJUR_CA_FILE unless the system trusts the
// server, and SYNCER_CONJUR_JWT, any text, if the suite may set up a JWT
// authenticator. False when there is no URL.
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

// client trusts the target and changes nothing in what goes over the wire. The
// certificate may be nil.
func (t Target) client(certificate *tls.Certificate) *http.Client {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if t.CA != nil {
		config.RootCAs = x509.NewCertPool()
		config.RootCAs.AppendCertsFromPEM(t.CA)
	}
	if certificate != nil { // whatever authorities the server names
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return certificate, nil }
	}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: config, DisableCompression: true}}
}
