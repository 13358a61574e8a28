package config

//go:generate go test -run "TestSchemaIsCurrent|TestReferenceIsCurrent" -update .

import (
	"slices"
	"strings"
	"time"

	"github.com/secretsync/syncer/pkg/targets"
)

// kind is what a setting's text must look like.
type kind string

const (
	kindText        kind = "text"
	kindBoolean     kind = "Boolean"
	kindInteger     kind = "integer"
	kindPercent     kind = "percentage, or `off`"
	kindDuration    kind = "duration"
	kindChoice      kind = "one of"
	kindNames       kind = "list of names"
	kindAddress     kind = "host:port"
	kindSignal      kind = "signal name"
	kindUser        kind = "user's number or name"
	kindCommand     kind = "name of an executable"
	kindPermissions kind = "permissions"
	kindEntries     kind = "list of secrets"
	kindNodeSecrets kind = "Boolean, `required`, or aliases"
	kindConfigMap   kind = "ConfigMap's name/key"
	kindObjectName  kind = "name of an object"
	kindNamespace   kind = "name of a namespace"
	kindLabel       kind = "short name"
	kindSecrets     kind = "list of Secrets"
	kindMap         kind = "map"
	kindItems       kind = "list"
	kindObject      kind = "map of the settings below"
	kindTexts       kind = "text, or list of texts"
	kindPeriod      kind = "duration; days too, such as `30d`"
)

// setting is one thing that an operator may set. The names, defaults and
// allowed values of annotations and variables are those of the Secrets
// Provider's annotation reference, unless doc says that they are new.
type setting struct {
	// name is the setting's path in the configuration file, or in an item of
	// one of its lists, and what the code calls it.
	name string
	// annotation is the key without its domain; with a dot at its end the
	// group's name follows. Empty: none.
	annotation string
	env        string // empty: none
	kind       kind
	scope      Scope // what a change touches; none of what has no effect, or has that of its list
	// of returns the value that is in effect. Nil where another setting, or
	// the list that the setting is in, shows what it changes.
	of       func(subject) any
	noun     string        // what a value of kindChoice is
	allowed  []string      // kindChoice: all values
	min, max int           // kindInteger: bounds; max 0 means none
	least    time.Duration // kindDuration, kindPeriod: the shortest
	def      string        // default
	// follows says in words what the default is where that is not one text.
	follows string
	// items returns the table of an item of a list, of a map of maps, or of the
	// one map of kindObject, in the configuration file. With short a text stands for the item's first
	// setting.
	items func() []setting
	short bool
	// lenient settings fall back to the default, with a warning, when the
	// environment holds something else than the kind allows, or when they are
	// numbers out of bounds, as the Secrets Provider does.
	lenient  bool
	required bool // in an item of a list
	envOnly  bool // not in the configuration file
	// credential settings say how Syncer proves who it is.
	credential bool
	later      bool   // known, checked, and without effect in this version
	doc        string // Markdown
}

// The settings' names.
const (
	nameDestination    = "secretsDestination"
	nameRefreshEnabled = "refresh.enabled"
	nameInterval       = "refresh.interval"
	nameRetryLimit     = "retry.limit"
	nameRetryInterval  = "retry.intervalSeconds"
	nameRestoreFiles   = "restoreDeletedFiles"
	nameSignal         = "restartApp.signal"
	nameSignalUser     = "restartApp.user"
	nameSignalCommand  = "restartApp.command"
	nameServerAddress  = "server.address"
	nameStatus         = "server.status"
	nameStatusToken    = "server.statusTokenFile"
	nameFreshness      = "health.freshness"
	nameReady          = "health.ready"
	nameLogLevel       = "log.level"
	nameDebug          = "log.debug"

	nameApplianceURL = "conjur.applianceUrl"
	nameAuthnURL     = "conjur.authnUrl"
	nameAccount      = "conjur.account"
	nameLogin        = "conjur.login"
	nameAPIKey       = "conjur.apiKey"
	nameAPIKeyFile   = "conjur.apiKeyFile"
	nameJWTTokenPath = "conjur.jwtTokenPath"
	nameCertificate  = "conjur.sslCertificate"
	nameCertFile     = "conjur.certFile"

	nameInboxPath      = "conjur.clientCertPath"
	nameInboxWait      = "conjur.clientCertWaitSeconds"
	nameAzureClientID  = "conjur.azureClientId"
	nameMetadataURL    = "conjur.metadataUrl"
	nameClientCertFile = "conjur.clientCertFile"
	nameClientKeyFile  = "conjur.clientKeyFile"

	namePodName    = "kubernetes.podName"
	nameNodeName   = "kubernetes.nodeName"
	nameNodeBase   = "nodeSecretsBase"
	nameNamespace  = "kubernetes.namespace"
	nameK8sSecrets = "kubernetes.secrets"
	nameAllowlist  = "kubernetes.namespaces"
	nameLeaseSpace = "leaderElection.namespace"

	nameName        = "name"
	nameSecrets     = "secrets"
	namePolicyPath  = "policyPath"
	namePath        = "path"
	nameFormat      = "format"
	namePermissions = "permissions"
	nameTemplate    = "template"
	nameConfigMap   = "templateConfigMap"
	nameNodeSecrets = "nodeSecrets"
	nameTargets     = "targets"
	nameIdentities  = "identities"
	nameNamespaces  = "namespaces"

	nameItsNamespace  = "namespace"
	nameCreate        = "create"
	nameType          = "type"
	nameMap           = "map"
	nameGroups        = "groups"
	namePullSecretFor = "pullSecretFor"
	nameRestart       = "restart"
	nameID            = "id"
	nameContentType   = "contentType"
)

// settings is the one table of what may be set once for the process:
// validation, documentation and the configuration file's schema follow it.
func settings() []setting {
	return append(append(processSettings(), conjurSettings()...), clusterSettings()...)
}

// fileSettings is the table of the configuration file, which has lists besides.
func fileSettings() []setting {
	return append(append(settings(), rotationSettings()...),
		setting{name: nameTargets, scope: ScopeLive, kind: kindItems, items: targetSettings, doc: "The secret groups, each a file that is kept in sync."},
		setting{name: nameIdentities, scope: ScopeLane, kind: kindItems, items: identitySettings, doc: "Identities that Conjur is asked as besides the process's own, and whom they serve."})
}

// CredentialVariables lists the environment variables that hold Syncer's own
// credentials, or where they are.
func CredentialVariables() (names []string) {
	for _, s := range settings() {
		if s.credential {
			names = append(names, s.env)
		}
	}
	return names
}

// WithoutCredentials returns an environment without Syncer's own credentials, for
// a program that it runs.
func WithoutCredentials(environ []string) []string {
	own := CredentialVariables()
	return slices.DeleteFunc(slices.Clone(environ), func(assignment string) bool {
		name, _, _ := strings.Cut(assignment, "=")
		return slices.Contains(own, name)
	})
}

func formatNames() []string {
	var names []string
	for _, f := range targets.Formats() {
		names = append(names, string(f))
	}
	return names
}
