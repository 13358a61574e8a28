package config

//go:generate go test -run "TestSchemaIsCurrent|TestReferenceIsCurrent" -update .

import (
	"github.com/secretsync/syncer/pkg/targets"
)

// kind is what a setting's text must look like.
type kind string

const (
	kindText        kind = "text"
	kindBoolean     kind = "Boolean"
	kindInteger     kind = "integer"
	kindDuration    kind = "duration"
	kindChoice      kind = "one of"
	kindNames       kind = "list of names"
	kindSignal      kind = "signal name"
	kindPermissions kind = "permissions"
	kindEntries     kind = "list of secrets"
)

// setting is one thing that an operator may set. The names, defaults and
// allowed values of annotations and variables are those of the Secrets
// Provider's annotation reference, unless doc says that they are new.
type setting struct {
	// name is the setting's path in the configuration file, and what the code
	// calls it.
	name string
	// annotation is the key without its domain; with a dot at its end the
	// group's name follows. Empty: none.
	annotation string
	env        string // empty: none
	kind       kind
	noun       string   // what a value of kindChoice is
	allowed    []string // kindChoice: all values
	min, max   int      // kindInteger: bounds; max 0 means none
	def        string   // default, in the words of the documentation
	// lenient settings fall back to the default, with a warning, when the
	// environment holds something else than the kind allows, as the Secrets
	// Provider does.
	lenient bool
	envOnly bool     // not in the configuration file
	later   bool     // known, checked, and without effect in this version
	notYet  []string // of allowed: known, and refused in this version
	doc     string
}

// The settings' names.
const (
	nameMode           = "containerMode"
	nameDestination    = "secretsDestination"
	nameRefreshEnabled = "refresh.enabled"
	nameInterval       = "refresh.interval"
	nameRetryLimit     = "retry.limit"
	nameRetryInterval  = "retry.intervalSeconds"
	nameRemoveDeleted  = "removeDeletedSecrets"
	nameExitOnRevoked  = "exitOnRevoked"
	nameLogLevel       = "log.level"
	nameDebug          = "log.debug"
	nameLogFormat      = "log.format"
	nameApplianceURL   = "conjur.applianceUrl"
	nameAuthnURL       = "conjur.authnUrl"
	nameAccount        = "conjur.account"
	nameLogin          = "conjur.login"
	nameAPIKey         = "conjur.apiKey"
	nameJWTTokenPath   = "conjur.jwtTokenPath"
	nameCertificate    = "conjur.sslCertificate"
	nameCertFile       = "conjur.certFile"
	nameHTTPTimeout    = "conjur.httpTimeoutSeconds"
	namePodName        = "kubernetes.podName"
	nameNamespace      = "kubernetes.namespace"
	nameK8sSecrets     = "kubernetes.secrets"
	nameAllowlist      = "kubernetes.namespaces"

	nameSecrets     = "secrets"
	namePolicyPath  = "policyPath"
	namePath        = "path"
	nameFormat      = "format"
	namePermissions = "permissions"
	nameTemplate    = "template"
)

// settings is the one table of what may be set once for the process:
// validation, documentation and the configuration file's schema follow it.
func settings() []setting {
	return append(processSettings(), conjurSettings()...)
}

func processSettings() []setting {
	return []setting{
		{name: nameMode, annotation: "container-mode", env: "CONTAINER_MODE", kind: kindChoice, noun: "container mode", lenient: true,
			allowed: []string{string(ModeInit), string(ModeApplication), string(ModeSidecar), string(ModeStandalone)}, def: "init",
			notYet: []string{string(ModeStandalone)},
			doc:    "How Syncer runs: `init` and `application` (a Job) deliver once and end; `sidecar` stays beside its application; `standalone` serves many applications."},
		{name: nameDestination, annotation: "secrets-destination", env: "SECRETS_DESTINATION", kind: kindChoice, noun: "destination",
			allowed: []string{string(DestinationFile), string(DestinationKubernetes)},
			notYet:  []string{string(DestinationKubernetes)},
			doc:     "Where the secrets go. Required. `file` cannot be set by the environment."},
		{name: nameRefreshEnabled, annotation: "secrets-refresh-enabled", kind: kindBoolean, def: "true when an interval is set, else false",
			doc: "Whether Conjur is polled for changes; only in the modes `sidecar` and `standalone`."},
		{name: nameInterval, annotation: "secrets-refresh-interval", kind: kindDuration, def: "5m when refresh is enabled",
			doc: "Time between two polls, at least `1s`; setting it enables refresh."},
		{name: nameRetryLimit, annotation: "retry-count-limit", env: "RETRY_COUNT_LIMIT", kind: kindInteger, min: -1, lenient: true, def: "5; -1 in standalone mode",
			doc: "How often a failed delivery is tried again before `init` and `application` give up; `-1` is for ever."},
		{name: nameRetryInterval, annotation: "retry-interval-sec", env: "RETRY_INTERVAL_SEC", kind: kindInteger, lenient: true, def: "1",
			doc: "Seconds before the first retry; `0` is at once."},
		{name: nameRemoveDeleted, annotation: "remove-deleted-secrets-enabled", env: "REMOVE_DELETED_SECRETS", kind: kindBoolean, lenient: true, def: "true",
			doc: "Whether what was deleted or revoked in Conjur is removed from its destination."},
		{name: nameExitOnRevoked, annotation: "exit-on-revoked", kind: kindBoolean, def: "true",
			doc: "Whether a sidecar ends with status 1 after a removal. New in Syncer."},
		{name: nameLogLevel, annotation: "log-level", env: "LOG_LEVEL", kind: kindChoice, noun: "log level", lenient: true,
			allowed: []string{"debug", "info", "warn", "error"}, def: "info", doc: "The least severe messages that are logged."},
		{name: nameDebug, annotation: "debug-logging", env: "DEBUG", kind: kindBoolean, lenient: true, def: "false",
			doc: "Deprecated: use the log level `debug`, which also wins over this."},
		{name: nameLogFormat, annotation: "log-format", env: "LOG_FORMAT", kind: kindChoice, noun: "log format", lenient: true,
			allowed: []string{"text", "json"}, def: "text", doc: "The form of a log line. New in Syncer."},
		{name: nameK8sSecrets, annotation: "k8s-secrets", env: "K8S_SECRETS", kind: kindNames,
			doc: "The Kubernetes Secrets to fill, when the destination is `k8s_secrets`: a YAML list in the annotation, comma-separated in the environment. None: those with the label `conjur.org/managed-by-provider: \"true\"`."},
		{name: nameAllowlist, annotation: "namespace-allowlist", env: "NAMESPACE_ALLOWLIST", kind: kindNames,
			doc: "The namespaces that `standalone` serves, comma-separated, or `*` for all. Required there."},
		{name: nameNamespace, env: "MY_POD_NAMESPACE", kind: kindText,
			doc: "The Pod's namespace; required when the destination is `k8s_secrets`."},
		{name: namePodName, env: "MY_POD_NAME", kind: kindText, envOnly: true,
			doc: "The Pod's name; required by the authenticator `authn-k8s`."},
		{name: "serverAddress", annotation: "server-address", env: "SERVER_ADDRESS", kind: kindText, def: ":8080", later: true,
			doc: "Where `standalone` serves its probes, as host:port."},
		{name: "restartAppSignal", annotation: "restart-app-signal", kind: kindSignal, later: true,
			doc: "The signal, such as `SIGHUP`, that the application gets after a change."},
		{name: "tracing.console", annotation: "log-traces", env: "LOG_TRACES", kind: kindBoolean, lenient: true, def: "false", later: true,
			doc: "Whether traces are printed."},
		{name: "tracing.jaegerUrl", annotation: "jaeger-collector-url", env: "JAEGER_COLLECTOR_URL", kind: kindText, later: true,
			doc: "The Jaeger collector that traces go to; wins over `log-traces`."},
	}
}

func conjurSettings() []setting {
	return []setting{
		{name: nameApplianceURL, env: "CONJUR_APPLIANCE_URL", kind: kindText,
			doc: "Conjur's address. Required; `https://`, or `http://` on a loopback address."},
		{name: nameAuthnURL, env: "CONJUR_AUTHN_URL", kind: kindText, def: "plain `authn` at Conjur's address, with an API key",
			doc: "The authenticator's address, such as `https://conjur.example.com/authn-jwt/my-service`. A segment of its path names the authenticator: `authn` and `authn-jwt` are supported."},
		{name: nameAccount, env: "CONJUR_ACCOUNT", kind: kindText, doc: "Conjur's account. Required."},
		{name: nameLogin, annotation: "authn-identity", env: "CONJUR_AUTHN_LOGIN", kind: kindText,
			doc: "The identity to authenticate as, such as `host/app`. Required with an API key; optional for `authn-jwt`."},
		{name: nameAPIKey, env: "CONJUR_AUTHN_API_KEY", kind: kindText, envOnly: true,
			doc: "The API key of the identity, for `authn`. New in Syncer."},
		{name: nameJWTTokenPath, annotation: "jwt-token-path", env: "JWT_TOKEN_PATH", kind: kindText, def: defaultJWTTokenPath,
			doc: "The file with the token for `authn-jwt`, read anew at each authentication. Its folder must exist."},
		{name: nameCertificate, env: "CONJUR_SSL_CERTIFICATE", kind: kindText,
			doc: "The certificates, as PEM text, that Conjur's must be signed by; wins over the file. Neither: those of the system."},
		{name: nameCertFile, env: "CONJUR_CERT_FILE", kind: kindText,
			doc: "A PEM file with these certificates; a changed file is used without a restart."},
		{name: nameHTTPTimeout, env: "CONJUR_HTTP_TIMEOUT", kind: kindInteger, min: 1, max: 600, lenient: true, def: "60",
			doc: "Seconds that a request to Conjur may take."},
	}
}

// groupSettings is the table of what may be set for each secret group.
func groupSettings() []setting {
	return []setting{
		{name: nameSecrets, annotation: "conjur-secrets.", kind: kindEntries,
			doc: "The secrets of the group: a YAML list of `- id`, `- alias: id`, each with an optional `content-type: base64`, or `*` for all. Required: it defines the group."},
		{name: namePolicyPath, annotation: "conjur-secrets-policy-path.", kind: kindText,
			doc: "A path put in front of the group's variables."},
		{name: namePath, annotation: "secret-file-path.", kind: kindText, def: "`{group}.{format}`; `{group}.out` for a template, `{group}` for a directory",
			doc: "The file, or for the format `directory` the folder, relative to the secrets folder, which it must not leave; a file's path that ends in `/` is the folder of the default file."},
		{name: nameFormat, annotation: "secret-file-format.", kind: kindChoice, noun: "format", allowed: formatNames(), def: string(targets.Formats()[0]),
			doc: "How the file is laid out. `java-properties`, `env-file` and `directory` (one file for each alias) are new in Syncer."},
		{name: namePermissions, annotation: "secret-file-permissions.", kind: kindPermissions, def: "`rw-r--r--`",
			doc: "The file's mode as `ls` shows it; the owner must be able to read and write."},
		{name: nameTemplate, annotation: "secret-file-template.", kind: kindText, def: "the file `{group}.tpl` of the templates folder",
			doc: "The Go text/template of the format `template`."},
	}
}

func formatNames() []string {
	var names []string
	for _, f := range targets.Formats() {
		names = append(names, string(f))
	}
	return names
}
