// Package config turns what an operator may set, as Pod annotations,
// environment variables or a configuration file, into one checked Config.
package config

import (
	"syscall"
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

// OneShot reports whether a process of the mode ends when all is delivered.
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
	// destination too, as Removal says.
	RemoveDeleted bool
	Removal       Removal
	// ExitOnRevoked: a sidecar ends with an error after such a removal.
	ExitOnRevoked bool
	// RestoreDeletedFiles: a file that the application deleted comes back at
	// the next refresh.
	RestoreDeletedFiles bool
	// SecretsSizeLimit is how many MiB all files may have together; at least 1.
	SecretsSizeLimit int
	Signal           Signal
	Server           Server
	Log              Log
	// Conjur is the default identity's connection. With DestinationKubernetes
	// it has no authenticator, an empty AuthnType, when none is set and other
	// identities serve all namespaces.
	Conjur Conjur
	// Identities are all that Conjur is asked as, the default one, whose name
	// is empty, first. IdentityOf chooses among them.
	Identities []Identity
	Kubernetes Kubernetes
	Rotation   Rotation // in ModeStandalone
	Node       Node
	Folders    Folders

	slips []slip // of the annotations that it was read from
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

// Removal is how sure and how slow a removal is.
type Removal struct {
	// Confirmations is how many polls, or retries in a one-shot mode, must
	// prove that a variable is gone before it is removed; at least 1.
	Confirmations int
	// Grace is the least time between the first proof and the removal; 0: as
	// long as it takes until the next poll. One-shot modes wait for it.
	Grace time.Duration
	// Brake is the share of an identity's variables, in percent, above which
	// a removal is held back for BrakeHold; 0: never.
	Brake     int
	BrakeHold time.Duration // at least a second
}

// Signal is what the application's processes are sent after a change. The zero
// Signal is none.
type Signal struct {
	Number syscall.Signal
	Name   string // such as "SIGHUP"
	// User narrows it to the processes of a user, by number or by name, and
	// Command to those whose executable has this base name. Empty: all.
	User, Command string
}

// Server is where probes and metrics are served, and what ready means.
type Server struct {
	Address string // host:port; empty: nowhere
	// Status: the status page is served too, to this machine only or, with a
	// StatusTokenFile, to whoever has the token in that file.
	Status          bool
	StatusTokenFile string
	// Freshness is how long ago a target may have been proven fresh for the
	// process to be ready; 0: no bound.
	Freshness time.Duration
	// Tried: the process is ready when every target was tried, not only when
	// it was delivered.
	Tried bool
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
	AuthnK8s    AuthnType = "authn-k8s"
	AuthnIAM    AuthnType = "authn-iam"
	AuthnAzure  AuthnType = "authn-azure"
	AuthnGCP    AuthnType = "authn-gcp"
	AuthnCert   AuthnType = "authn-cert"
)

// Conjur is how Conjur is reached.
type Conjur struct {
	ApplianceURL string // without a slash at its end
	AuthnURL     string // up to the authenticator's service id; without a slash at its end
	AuthnType    AuthnType
	Account      string
	Login        string       // may be empty with AuthnJWT and AuthnCert
	APIKey       secret.Value // with AuthnAPIKey, unless there is an APIKeyFile
	APIKeyFile   string       // with AuthnAPIKey; to be read at each authentication
	JWTTokenPath string       // with AuthnJWT
	// InboxPath is where Conjur brings the certificate to, and InboxWait how
	// long that may take; PodNamespace and PodName say whom. With AuthnK8s.
	InboxPath             string
	InboxWait             time.Duration
	PodNamespace, PodName string
	// AzureClientID chooses a user-assigned identity; empty: that of the
	// system. With AuthnAzure.
	AzureClientID string
	MetadataURL   string // with AuthnAzure and AuthnGCP; empty: the cloud's own
	// ClientCertFile and ClientKeyFile are PEM files, to be read at each
	// authentication. With AuthnCert.
	ClientCertFile, ClientKeyFile string
	// TokenTimeout is how long an access token is used at most; 0: as long as
	// it is good.
	TokenTimeout time.Duration
	// SSLCertificate is PEM text that wins over CertFile, a PEM file. With
	// neither the system's certificates are trusted.
	SSLCertificate string
	CertFile       string
	HTTPTimeout    time.Duration // of one request
}

// Folders are the base folders.
type Folders struct {
	Secrets   string `json:"secrets"`
	Templates string `json:"templates"`
	Status    string `json:"status"`
}
