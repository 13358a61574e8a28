// Package config turns what an operator may set, as Pod annotations,
// environment variables or a configuration file, into one checked Config.
package config

import (
	"time"

	"github.com/secretsync/syncer/pkg/secret"
	"github.com/secretsync/syncer/pkg/targets"
)

// Mode is how the process lives.
type Mode string

// The modes of conjur.org/container-mode.
const (
	ModeInit        Mode = "init"        // deliver once, before the application starts
	ModeApplication Mode = "application" // deliver once, as a Job
	ModeSidecar     Mode = "sidecar"     // stay beside one application
	ModeStandalone  Mode = "standalone"  // stay, for many applications
)

// OneShot tells whether a process of the mode ends when all is delivered.
func (m Mode) OneShot() bool { return m == ModeInit || m == ModeApplication }

// Destination is where secrets go.
type Destination string

// The destinations of conjur.org/secrets-destination.
const (
	DestinationFile       Destination = "file"
	DestinationKubernetes Destination = "k8s_secrets"
)

// Config is all that is set, with defaults filled in. What it says fits
// together; the files that it names may since have changed.
type Config struct {
	Mode        Mode
	Destination Destination
	Targets     []*targets.Target // sorted by group
	Refresh     Refresh
	Retry       Retry
	// RemoveDeleted: what was deleted or revoked in Conjur goes from its
	// destination too.
	RemoveDeleted bool
	// ExitOnRevoked: a sidecar ends with an error after such a removal.
	ExitOnRevoked bool
	Log           Log
	Conjur        Conjur
	Kubernetes    Kubernetes
	Folders       Folders
}

// Refresh is the periodic poll for changes. The zero Refresh is none.
type Refresh struct {
	Enabled  bool
	Interval time.Duration // at least a second when enabled
}

// Retry is how a failed delivery is tried again.
type Retry struct {
	Limit    int           // retries after the first attempt; -1: without end
	Interval time.Duration // before the first retry; 0: at once
}

// Log is what is logged, and how.
type Log struct {
	Level  string // debug, info, warn or error
	Format string // text or json
}

// AuthnType is the authenticator, as the path of its address has it.
type AuthnType string

// The authenticators that can be used.
const (
	AuthnAPIKey AuthnType = "authn"
	AuthnJWT    AuthnType = "authn-jwt"
)

// Conjur is how Conjur is reached.
type Conjur struct {
	ApplianceURL string // without a slash at its end
	AuthnURL     string // up to the authenticator's service id; without a slash at its end
	AuthnType    AuthnType
	Account      string
	Login        string       // may be empty with AuthnJWT
	APIKey       secret.Value // with AuthnAPIKey
	JWTTokenPath string       // with AuthnJWT
	// SSLCertificate is PEM text that wins over CertFile, a PEM file. With
	// neither the system's certificates are trusted.
	SSLCertificate string
	CertFile       string
	HTTPTimeout    time.Duration // of one request
}

// Kubernetes is what concerns the destination DestinationKubernetes only.
type Kubernetes struct {
	Namespace string   // the Pod's own
	Secrets   []string // names; none: Secrets are chosen by label
	// Namespaces is the allow-list of ModeStandalone: names, or "*" alone.
	Namespaces []string
}

// Folders are the base folders.
type Folders struct {
	Secrets, Templates, Status string
}
