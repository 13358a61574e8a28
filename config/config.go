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
	Mode        Mode        `name:"containerMode" annotation:"container-mode" env:"CONTAINER_MODE" scope:"process" noun:"container mode" allowed:"init application sidecar standalone" default:"init" is:"lenient"`
	Destination Destination `name:"secretsDestination" annotation:"secrets-destination" env:"SECRETS_DESTINATION" scope:"process" noun:"destination" allowed:"file k8s_secrets"`
	Refresh     Refresh
	Retry       Retry
	// NodeSecretsBase is the path below which all variables are that a node may
	// have its own in the place of; empty: the whole account.
	NodeSecretsBase string `name:"nodeSecretsBase" annotation:"node-secrets-base" scope:"live" follows:"the whole account"`
	// RemoveDeleted: what was deleted or revoked in Conjur goes from its
	// destination too, as Removal says.
	RemoveDeleted bool `name:"removeDeletedSecrets" annotation:"remove-deleted-secrets-enabled" env:"REMOVE_DELETED_SECRETS" scope:"live" default:"true" is:"lenient"`
	Removal       Removal
	// ExitOnRevoked: a sidecar ends with an error after such a removal.
	ExitOnRevoked bool `name:"exitOnRevoked" annotation:"exit-on-revoked" scope:"live" default:"true"`
	// RestoreDeletedFiles: a file that the application deleted comes back at
	// the next refresh.
	RestoreDeletedFiles bool `name:"restoreDeletedFiles" annotation:"restore-deleted-files" scope:"live" noun:"way to treat deleted files" allowed:"refresh never" true:"refresh" default:"refresh"`
	// SecretsSizeLimit is how many MiB all files may have together; at least 1.
	SecretsSizeLimit int `name:"secretsSizeLimit" annotation:"secrets-size-limit" scope:"process" min:"1" default:"64"`
	Signal           Signal
	Server           Server
	Log              Log
	_                bool   `name:"tracing.console" annotation:"log-traces" env:"LOG_TRACES" default:"false" is:"lenient later"`
	_                string `name:"tracing.jaegerUrl" annotation:"jaeger-collector-url" env:"JAEGER_COLLECTOR_URL" is:"later"`
	// Conjur is the default identity's connection. With DestinationKubernetes
	// it has no authenticator, an empty AuthnType, when none is set and other
	// identities serve all namespaces.
	Conjur Conjur `section:"conjur"`
	// Identities are all that Conjur is asked as, the default one, whose name
	// is empty, first. IdentityOf chooses among them.
	Identities []Identity
	Kubernetes Kubernetes        `section:"kubernetes"`
	Rotation   Rotation          `section:"rotation"` // in ModeStandalone
	Targets    []*targets.Target // sorted by group
	Folders    Folders

	_ []target   `name:"targets" scope:"live"`
	_ []Identity `name:"identities" scope:"lane"`

	slips []slip // of the annotations that it was read from
}

// Refresh is the periodic poll for changes. The zero Refresh is none.
type Refresh struct {
	Enabled bool `name:"refresh.enabled" annotation:"secrets-refresh-enabled" scope:"sources" follows:"true when an interval is set, else false"`
	// Interval is at least a second when enabled.
	Interval time.Duration `name:"refresh.interval" annotation:"secrets-refresh-interval" scope:"live" least:"1s" default:"5m" follows:"5m when refresh is enabled"`
}

// Retry is how a failed delivery is tried again.
type Retry struct {
	// Limit is retries after the first attempt; -1: without end.
	Limit int `name:"retry.limit" annotation:"retry-count-limit" env:"RETRY_COUNT_LIMIT" scope:"live" min:"-1" default:"5" follows:"5; -1 in standalone mode" is:"lenient"`
	// Interval is the time before the first retry; 0: at once.
	Interval time.Duration `name:"retry.intervalSeconds" annotation:"retry-interval-sec" env:"RETRY_INTERVAL_SEC" kind:"integer" scope:"live" default:"1" is:"lenient"`
}

// Removal is how sure and how slow a removal is.
type Removal struct {
	// Confirmations is how many polls, or retries in a one-shot mode, must
	// prove that a variable is gone before it is removed; at least 1.
	Confirmations int `name:"removal.confirmations" annotation:"removal-confirmations" env:"REMOVAL_CONFIRMATIONS" scope:"live" min:"1" default:"2"`
	// Grace is the least time between the first proof and the removal; 0: as
	// long as it takes until the next poll. One-shot modes wait for it.
	Grace time.Duration `name:"removal.grace" annotation:"removal-grace" env:"REMOVAL_GRACE" scope:"live" default:"10s"`
	// Brake is the share of an identity's variables, in percent, above which
	// a removal is held back for BrakeHold; 0: never.
	Brake     int           `name:"removal.brake" annotation:"removal-brake" env:"REMOVAL_BRAKE" kind:"percent" scope:"live" default:"50"`
	BrakeHold time.Duration `name:"removal.brakeHold" annotation:"removal-brake-hold" env:"REMOVAL_BRAKE_HOLD" scope:"live" least:"1s" default:"10m"`
}

// Signal is what the application's processes are sent after a change. The zero
// Signal is none.
type Signal struct {
	Number syscall.Signal
	Name   string `name:"restartApp.signal" annotation:"restart-app-signal" kind:"signal" scope:"live"` // such as "SIGHUP"
	// User narrows it to the processes of a user, by number or by name, and
	// Command to those whose executable has this base name. Empty: all.
	User    string `name:"restartApp.user" annotation:"restart-app-user" kind:"user" scope:"live"`
	Command string `name:"restartApp.command" annotation:"restart-app-command" kind:"command" scope:"live"`
}

// Server is where probes and metrics are served, and what ready means.
type Server struct {
	// Address is host:port; empty: nowhere.
	Address string `name:"server.address" annotation:"server-address" env:"SERVER_ADDRESS" kind:"address" scope:"process" follows:":8080 in standalone mode, else none"`
	// Status: the status page is served too, to this machine only or, with a
	// StatusTokenFile, to whoever has the token in that file.
	Status          bool   `name:"server.status" annotation:"server-status" env:"SERVER_STATUS" scope:"process" default:"false"`
	StatusTokenFile string `name:"server.statusTokenFile" annotation:"server-status-token-file" env:"SERVER_STATUS_TOKEN_FILE" scope:"process"`
	// Freshness is how long ago a target may have been proven fresh for the
	// process to be ready; 0: no bound.
	Freshness time.Duration `name:"health.freshness" annotation:"health-freshness" env:"HEALTH_FRESHNESS" scope:"live" least:"1s" follows:"three refresh intervals"`
	// Tried: the process is ready when every target was tried, not only when
	// it was delivered.
	Tried bool `name:"health.ready" annotation:"health-ready" env:"HEALTH_READY" scope:"live" noun:"meaning of ready" allowed:"delivered tried" true:"tried" default:"delivered"`
}

// Log is what is logged, and how.
type Log struct {
	Level  string `name:"log.level" annotation:"log-level" env:"LOG_LEVEL" scope:"live" noun:"log level" allowed:"debug info warn error" default:"info" is:"lenient"`
	_      bool   `name:"log.debug" annotation:"debug-logging" env:"DEBUG" scope:"live" default:"false" is:"lenient"`
	Format string `name:"log.format" annotation:"log-format" env:"LOG_FORMAT" scope:"live" noun:"log format" allowed:"text json" default:"text" is:"lenient"`
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

// Conjur is how Conjur is reached. The tag identity says what a named identity has
// in the place of its own, if it may have any.
type Conjur struct {
	// ApplianceURL has no slash at its end.
	ApplianceURL string `name:"conjur.applianceUrl" env:"CONJUR_APPLIANCE_URL" scope:"lane"`
	// AuthnURL is up to the authenticator's service id, without a slash at its end.
	AuthnURL  string `name:"conjur.authnUrl" env:"CONJUR_AUTHN_URL" scope:"lane" follows:"plain \"authn\" at Conjur's address, with an API key" identity:"plain \"authn\" with an API key, else the process's authenticator"`
	AuthnType AuthnType
	Account   string `name:"conjur.account" env:"CONJUR_ACCOUNT" scope:"lane" identity:"the process's account"`
	// Login may be empty with AuthnJWT and AuthnCert.
	Login string `name:"conjur.login" annotation:"authn-identity" env:"CONJUR_AUTHN_LOGIN" scope:"lane" identity:""`
	// APIKey is with AuthnAPIKey, unless there is an APIKeyFile.
	APIKey secret.Value `name:"conjur.apiKey" env:"CONJUR_AUTHN_API_KEY" scope:"lane" is:"envOnly credential"`
	// APIKeyFile is with AuthnAPIKey; to be read at each authentication.
	APIKeyFile string `name:"conjur.apiKeyFile" env:"CONJUR_AUTHN_API_KEY_FILE" scope:"lane" is:"credential" identity:""`
	// JWTTokenPath is with AuthnJWT.
	JWTTokenPath string `name:"conjur.jwtTokenPath" annotation:"jwt-token-path" env:"JWT_TOKEN_PATH" scope:"lane" default:"/var/run/secrets/kubernetes.io/serviceaccount/token" is:"credential" identity:"the process's file"`
	// InboxPath is where Conjur brings the certificate to, and InboxWait how
	// long that may take; PodNamespace and PodName say whom. With AuthnK8s.
	InboxPath             string        `name:"conjur.clientCertPath" env:"CONJUR_CLIENT_CERT_PATH" scope:"process" default:"/etc/conjur/ssl/client.pem" follows:"\"/etc/conjur/ssl/client.pem\"" is:"envOnly"`
	InboxWait             time.Duration `name:"conjur.clientCertWaitSeconds" env:"CONJUR_CLIENT_CERT_RETRY_COUNT_LIMIT" kind:"integer" scope:"lane" min:"1" default:"10"`
	PodNamespace, PodName string
	// AzureClientID chooses a user-assigned identity; empty: that of the
	// system. With AuthnAzure.
	AzureClientID string `name:"conjur.azureClientId" env:"CONJUR_AUTHN_AZURE_CLIENT_ID" scope:"lane" follows:"the system-assigned identity" identity:"the process's"`
	// MetadataURL is with AuthnAzure and AuthnGCP; empty: the cloud's own.
	MetadataURL string `name:"conjur.metadataUrl" env:"CONJUR_AUTHN_METADATA_URL" scope:"lane" follows:"the cloud's own"`
	// ClientCertFile and ClientKeyFile are PEM files, to be read at each
	// authentication. With AuthnCert.
	ClientCertFile string `name:"conjur.clientCertFile" env:"CONJUR_AUTHN_CERT_FILE" scope:"lane" is:"credential" identity:"the process's file"`
	ClientKeyFile  string `name:"conjur.clientKeyFile" env:"CONJUR_AUTHN_CERT_KEY_FILE" scope:"lane" is:"credential" identity:"the process's file"`
	// TokenTimeout is how long an access token is used at most; 0: as long as
	// it is good.
	TokenTimeout time.Duration `name:"conjur.tokenTimeout" env:"CONJUR_TOKEN_TIMEOUT" scope:"lane" least:"1s" follows:"three quarters of its life"`
	// SSLCertificate is PEM text that wins over CertFile, a PEM file. With
	// neither the system's certificates are trusted.
	SSLCertificate string `name:"conjur.sslCertificate" env:"CONJUR_SSL_CERTIFICATE" scope:"lane"`
	CertFile       string `name:"conjur.certFile" env:"CONJUR_CERT_FILE" scope:"lane"`
	// HTTPTimeout is that of one request.
	HTTPTimeout time.Duration `name:"conjur.httpTimeoutSeconds" env:"CONJUR_HTTP_TIMEOUT" kind:"integer" scope:"lane" min:"1" max:"600" default:"60" is:"lenient"`
}

// Folders are the base folders.
type Folders struct {
	Secrets   string `json:"secrets"`
	Templates string `json:"templates"`
	Status    string `json:"status"`
}
