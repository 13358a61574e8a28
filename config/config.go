// Package config makes one checked Config from an operator's settings: Pod annotations,
// environment variables or a configuration file.
//
// The tags of a field declare a setting. The type setting explains each tag. A field named
// "_" declares a setting whose effect another field shows.
package config

import (
	"syscall"
	"time"

	"github.com/secretsync/syncer/pkg/secret"
	"github.com/secretsync/syncer/pkg/targets"
)

// Mode determines the lifecycle of the process.
type Mode string

// The modes of conjur.org/container-mode.
const (
	ModeInit        Mode = "init"        // deliver once, before the application starts
	ModeApplication Mode = "application" // deliver once, as a Job
	ModeSidecar     Mode = "sidecar"     // run next to one application
	ModeStandalone  Mode = "standalone"  // run for many applications
)

// OneShot reports whether a process in this mode ends after it has delivered everything.
func (m Mode) OneShot() bool { return m == ModeInit || m == ModeApplication }

// Destination is the place where Syncer writes secrets.
type Destination string

// The destinations of conjur.org/secrets-destination.
const (
	DestinationFile       Destination = "file"
	DestinationKubernetes Destination = "k8s_secrets"
)

// Config contains all settings, with defaults filled in. The settings are consistent. The
// files that they name may have changed since.
type Config struct {
	Mode        Mode        `name:"containerMode" annotation:"container-mode" env:"CONTAINER_MODE" scope:"process" noun:"container mode" allowed:"init application sidecar standalone" default:"init" is:"lenient"`
	Destination Destination `name:"secretsDestination" annotation:"secrets-destination" env:"SECRETS_DESTINATION" scope:"process" noun:"destination" allowed:"file k8s_secrets"`
	Refresh     Refresh
	Retry       Retry
	// NodeSecretsBase is the path of all variables that a node-specific variable may
	// replace. If empty, it is the whole account.
	NodeSecretsBase string `name:"nodeSecretsBase" annotation:"node-secrets-base" scope:"live" follows:"the whole account"`
	// RemoveDeleted also removes deleted or revoked variables from their destination, as
	// Removal says.
	RemoveDeleted bool `name:"removeDeletedSecrets" annotation:"remove-deleted-secrets-enabled" env:"REMOVE_DELETED_SECRETS" scope:"live" default:"true" is:"lenient"`
	Removal       Removal
	// ExitOnRevoked ends a sidecar with an error after such a removal.
	ExitOnRevoked bool `name:"exitOnRevoked" annotation:"exit-on-revoked" scope:"live" default:"true"`
	// RestoreDeletedFiles restores a file that the application deleted, at the next
	// refresh.
	RestoreDeletedFiles bool `name:"restoreDeletedFiles" annotation:"restore-deleted-files" scope:"live" noun:"way to treat deleted files" allowed:"refresh never" true:"refresh" default:"refresh"`
	// SecretsSizeLimit is the maximum total size of all files in MiB; at least 1.
	SecretsSizeLimit int `name:"secretsSizeLimit" annotation:"secrets-size-limit" scope:"process" min:"1" default:"64"`
	Signal           Signal
	InPlace          InPlace
	Server           Server
	Log              Log
	_                bool   `name:"tracing.console" annotation:"log-traces" env:"LOG_TRACES" default:"false" is:"lenient later"`
	_                string `name:"tracing.jaegerUrl" annotation:"jaeger-collector-url" env:"JAEGER_COLLECTOR_URL" is:"later"`
	// Conjur is the default identity's connection. With DestinationKubernetes its
	// AuthnType may be empty. This happens if no authenticator is set and other
	// identities serve all namespaces.
	Conjur Conjur `section:"conjur"`
	// Identities are all Conjur identities. The default one, whose name is empty, is
	// first. IdentityOf chooses among them.
	Identities []Identity
	Kubernetes Kubernetes        `section:"kubernetes"`
	Rotation   Rotation          `section:"rotation"` // in ModeStandalone
	Targets    []*targets.Target // sorted by group
	Folders    Folders

	_ []target   `name:"targets" scope:"live"`
	_ []Identity `name:"identities" scope:"lane"`

	misspellings []misspelling // from the annotations
	said         values        // the set values of lists and groups, without defaults, for output.go
	hints        []Problem
}

// Refresh is the periodic poll for changes. The zero Refresh disables it.
type Refresh struct {
	Enabled bool `name:"refresh.enabled" annotation:"secrets-refresh-enabled" scope:"sources" follows:"true when an interval is set, else false"`
	// Interval is at least a second when enabled.
	Interval time.Duration `name:"refresh.interval" annotation:"secrets-refresh-interval" env:"SECRETS_REFRESH_INTERVAL" scope:"live" least:"1s" default:"5m" follows:"5m when refresh is enabled"`
}

// Retry describes how to retry a failed delivery.
type Retry struct {
	// Limit is the number of retries after the first attempt; -1 means no limit.
	Limit int `name:"retry.limit" annotation:"retry-count-limit" env:"RETRY_COUNT_LIMIT" scope:"live" min:"-1" default:"5" follows:"5; -1 in standalone mode" is:"lenient"`
	// Interval is the time before the first retry; 0 retries at once.
	Interval time.Duration `name:"retry.intervalSeconds" annotation:"retry-interval-sec" env:"RETRY_INTERVAL_SEC" kind:"integer" scope:"live" default:"1" is:"lenient"`
}

// Removal determines the proof and the delay before a removal.
type Removal struct {
	// Confirmations is how many polls must prove that a variable is gone before its
	// removal; at least 1. In a one-shot mode it counts retries.
	Confirmations int `name:"removal.confirmations" annotation:"removal-confirmations" env:"REMOVAL_CONFIRMATIONS" scope:"live" min:"1" default:"2"`
	// Grace is the least time between the first proof and the removal. 0 means until the
	// next poll. One-shot modes wait for it.
	Grace time.Duration `name:"removal.grace" annotation:"removal-grace" env:"REMOVAL_GRACE" scope:"live" default:"10s"`
	// Brake is a percentage of an identity's variables. A removal of more variables waits
	// for BrakeHold; 0 disables this limit.
	Brake     int           `name:"removal.brake" annotation:"removal-brake" env:"REMOVAL_BRAKE" kind:"percent" scope:"live" default:"50"`
	BrakeHold time.Duration `name:"removal.brakeHold" annotation:"removal-brake-hold" env:"REMOVAL_BRAKE_HOLD" scope:"live" least:"1s" default:"10m"`
}

// Signal is the signal to the application's processes after a change. The zero Signal
// sends nothing.
type Signal struct {
	Number syscall.Signal
	Name   string `name:"restartApp.signal" annotation:"restart-app-signal" kind:"signal" scope:"live"` // such as "SIGHUP"
	// User restricts it to the processes of a user, by number or by name. Command
	// restricts it to those whose executable has this base name. Empty means all.
	User    string `name:"restartApp.user" annotation:"restart-app-user" kind:"user" scope:"live"`
	Command string `name:"restartApp.command" annotation:"restart-app-command" kind:"command" scope:"live"`
}

// InPlace has the kubelet restart all containers of a sidecar's Pod after a change. The
// zero InPlace restarts nothing.
type InPlace struct {
	Enabled bool `name:"restartApp.inPlace" annotation:"restart-app-in-place" env:"RESTART_APP_IN_PLACE" scope:"live" default:"false" follows:"false"`
	// Every is the least time between two restarts; it grows when they follow one another.
	Every time.Duration `name:"restartApp.every" annotation:"restart-app-every" scope:"live" least:"1s" default:"1m" follows:"1m with restarts in place"`
	// Warning is the time between the announcement and the restart.
	Warning time.Duration `name:"restartApp.warning" annotation:"restart-app-warning" scope:"live" default:"0s" follows:"none"`
}

// InPlaceStatus is the exit status that asks the kubelet to restart all containers of the
// Pod. A rule with the action RestartAllContainers must name it, in the restartPolicyRules
// of Syncer's container (Kubernetes 1.36).
const InPlaceStatus = 85

// Server describes where to serve probes and metrics, and the condition for ready.
type Server struct {
	// Address is host:port. If empty, nothing is served.
	Address string `name:"server.address" annotation:"server-address" env:"SERVER_ADDRESS" kind:"address" scope:"process" follows:":8080 in standalone mode, else none"`
	// Status also serves the status page: only to this machine, or, with a
	// StatusTokenFile, to clients with the token in that file.
	Status          bool   `name:"server.status" annotation:"server-status" env:"SERVER_STATUS" scope:"process" default:"false"`
	StatusTokenFile string `name:"server.statusTokenFile" annotation:"server-status-token-file" env:"SERVER_STATUS_TOKEN_FILE" scope:"process"`
	// Freshness is the maximum age of a target's last freshness proof for the process to
	// be ready; 0 means no limit.
	Freshness time.Duration `name:"health.freshness" annotation:"health-freshness" env:"HEALTH_FRESHNESS" scope:"live" least:"1s" follows:"three refresh intervals"`
	// Tried makes the process ready when every target was tried, even if it was not
	// delivered.
	Tried bool `name:"health.ready" annotation:"health-ready" env:"HEALTH_READY" scope:"live" noun:"meaning of ready" allowed:"delivered tried" true:"tried" default:"delivered"`
}

// Log configures the content and format of the log.
type Log struct {
	Level  string `name:"log.level" annotation:"log-level" env:"LOG_LEVEL" scope:"live" noun:"log level" allowed:"debug info warn error" default:"info" is:"lenient"`
	_      bool   `name:"log.debug" annotation:"debug-logging" env:"DEBUG" scope:"live" default:"false" is:"lenient"`
	Format string `name:"log.format" annotation:"log-format" env:"LOG_FORMAT" scope:"live" noun:"log format" allowed:"text json" default:"text" is:"lenient"`
}

// AuthnType is an authenticator, named as in the path of its URL.
type AuthnType string

// The supported authenticators.
const (
	AuthnAPIKey AuthnType = "authn"
	AuthnJWT    AuthnType = "authn-jwt"
	AuthnK8s    AuthnType = "authn-k8s"
	AuthnIAM    AuthnType = "authn-iam"
	AuthnAzure  AuthnType = "authn-azure"
	AuthnGCP    AuthnType = "authn-gcp"
	AuthnCert   AuthnType = "authn-cert"
)

// Conjur describes how to reach Conjur. The tag identity marks the settings that a named
// identity may override, and says how.
type Conjur struct {
	// ApplianceURL has no trailing slash.
	ApplianceURL string `name:"conjur.applianceUrl" env:"CONJUR_APPLIANCE_URL" scope:"lane"`
	// AuthnURL ends with the authenticator's service id, without a trailing slash.
	AuthnURL  string `name:"conjur.authnUrl" env:"CONJUR_AUTHN_URL" scope:"lane" follows:"plain \"authn\" at Conjur's address, with an API key" identity:"plain \"authn\" with an API key, else the process's authenticator"`
	AuthnType AuthnType
	Account   string `name:"conjur.account" env:"CONJUR_ACCOUNT" scope:"lane" identity:"the process's account"`
	// Login may be empty with AuthnJWT and AuthnCert.
	Login string `name:"conjur.login" annotation:"authn-identity" env:"CONJUR_AUTHN_LOGIN" scope:"lane" identity:""`
	// APIKey is for AuthnAPIKey, unless there is an APIKeyFile.
	APIKey secret.Value `name:"conjur.apiKey" env:"CONJUR_AUTHN_API_KEY" scope:"lane" is:"envOnly credential"`
	// APIKeyFile is for AuthnAPIKey. Syncer reads it at each authentication.
	APIKeyFile string `name:"conjur.apiKeyFile" env:"CONJUR_AUTHN_API_KEY_FILE" scope:"lane" is:"credential" identity:""`
	// JWTTokenPath is for AuthnJWT.
	JWTTokenPath string `name:"conjur.jwtTokenPath" annotation:"jwt-token-path" env:"JWT_TOKEN_PATH" scope:"lane" default:"/var/run/secrets/kubernetes.io/serviceaccount/token" is:"credential" identity:"the process's file"`
	// InboxPath is where Conjur delivers the certificate, and InboxWait the timeout for
	// this. PodNamespace and PodName identify the Pod. All are for AuthnK8s.
	InboxPath             string        `name:"conjur.clientCertPath" env:"CONJUR_CLIENT_CERT_PATH" scope:"process" default:"/etc/conjur/ssl/client.pem" follows:"\"/etc/conjur/ssl/client.pem\"" is:"envOnly"`
	InboxWait             time.Duration `name:"conjur.clientCertWaitSeconds" env:"CONJUR_CLIENT_CERT_RETRY_COUNT_LIMIT" kind:"integer" scope:"lane" min:"1" default:"10"`
	PodNamespace, PodName string
	// AzureClientID selects a user-assigned identity. If empty, it is the system-assigned
	// identity. For AuthnAzure.
	AzureClientID string `name:"conjur.azureClientId" env:"CONJUR_AUTHN_AZURE_CLIENT_ID" scope:"lane" follows:"the system-assigned identity" identity:"the process's"`
	// MetadataURL is for AuthnAzure and AuthnGCP. If empty, it is the cloud's own
	// address.
	MetadataURL string `name:"conjur.metadataUrl" env:"CONJUR_AUTHN_METADATA_URL" scope:"lane" follows:"the cloud's own"`
	// ClientCertFile and ClientKeyFile are PEM files for AuthnCert. Syncer reads them at
	// each authentication.
	ClientCertFile string `name:"conjur.clientCertFile" env:"CONJUR_AUTHN_CERT_FILE" scope:"lane" is:"credential" identity:"the process's file"`
	ClientKeyFile  string `name:"conjur.clientKeyFile" env:"CONJUR_AUTHN_CERT_KEY_FILE" scope:"lane" is:"credential" identity:"the process's file"`
	// TokenTimeout limits the use of an access token; 0 means until it expires.
	TokenTimeout time.Duration `name:"conjur.tokenTimeout" env:"CONJUR_TOKEN_TIMEOUT" scope:"lane" least:"1s" follows:"three quarters of its life"`
	// SSLCertificate is PEM text and takes precedence over CertFile, a PEM file. Without
	// both, Syncer trusts the system's certificates.
	SSLCertificate string `name:"conjur.sslCertificate" env:"CONJUR_SSL_CERTIFICATE" scope:"lane"`
	CertFile       string `name:"conjur.certFile" env:"CONJUR_CERT_FILE" scope:"lane"`
	// HTTPTimeout limits one request.
	HTTPTimeout time.Duration `name:"conjur.httpTimeoutSeconds" env:"CONJUR_HTTP_TIMEOUT" kind:"integer" scope:"lane" min:"1" max:"600" default:"60" is:"lenient"`
}

// Folders are the base folders.
type Folders struct {
	Secrets   string `json:"secrets"`
	Templates string `json:"templates"`
	Status    string `json:"status"`
}
