package config

import (
	"strings"
	"time"
)

// The values of conjur.org/restore-deleted-files.
const (
	restoreAtRefresh = "refresh"
	restoreNever     = "never"
)

// The values of conjur.org/health-ready.
const (
	readyDelivered = "delivered"
	readyTried     = "tried"
)

// either returns the text of a choice of two.
func either(is bool, yes, no string) string {
	if is {
		return yes
	}
	return no
}

// processSettings is what concerns the process as a whole.
func processSettings() []setting {
	return append([]setting{
		{name: "containerMode", scope: ScopeProcess, of: func(s subject) any { return &s.Mode }, annotation: "container-mode", env: "CONTAINER_MODE", kind: kindChoice, noun: "container mode", lenient: true,
			allowed: []string{string(ModeInit), string(ModeApplication), string(ModeSidecar), string(ModeStandalone)}, def: "init",
			doc: "How Syncer runs: `init` and `application` (a Job) deliver once and end; `sidecar` stays beside its application; `standalone` serves many applications."},
		{name: nameDestination, scope: ScopeProcess, of: func(s subject) any { return &s.Destination }, annotation: "secrets-destination", env: "SECRETS_DESTINATION", kind: kindChoice, noun: "destination",
			allowed: []string{string(DestinationFile), string(DestinationKubernetes)},
			doc:     "Where the secrets go. Required. `file` cannot be set by the environment, nor in the mode `standalone`."},
		{name: nameRefreshEnabled, scope: ScopeSources, of: func(s subject) any { return &s.Refresh.Enabled }, annotation: "secrets-refresh-enabled", kind: kindBoolean, follows: "true when an interval is set, else false",
			doc: "Whether Conjur is polled for changes; only in the modes `sidecar` and `standalone`."},
		{name: nameInterval, scope: ScopeLive, of: func(s subject) any { return &s.Refresh.Interval }, annotation: "secrets-refresh-interval", kind: kindDuration, least: time.Second, def: "5m", follows: "5m when refresh is enabled",
			doc: "Time between two polls, at least `1s`; setting it enables refresh."},
		{name: nameRetryLimit, scope: ScopeLive, of: func(s subject) any { return &s.Retry.Limit }, annotation: "retry-count-limit", env: "RETRY_COUNT_LIMIT", kind: kindInteger, min: -1, lenient: true, def: "5", follows: "5; -1 in standalone mode",
			doc: "How often a failed delivery is tried again before `init` and `application` give up; `-1` is for ever."},
		{name: nameRetryInterval, scope: ScopeLive, of: func(s subject) any { return &s.Retry.Interval }, annotation: "retry-interval-sec", env: "RETRY_INTERVAL_SEC", kind: kindInteger, lenient: true, def: "1",
			doc: "Seconds before the first retry; `0` is at once, and more than 60, or than the refresh interval, is taken as that."},
		{name: nameNodeBase, scope: ScopeLive, of: func(s subject) any { return &s.Node.SecretsBase }, annotation: "node-secrets-base", kind: kindText, follows: "the whole account",
			doc: "The path, such as `data/apps`, below which all variables are that a node may have [its own](#secrets-of-a-node) in the place of. New in Syncer."},
	}, append(removalSettings(), append(applicationSettings(), observationSettings()...)...)...)
}

// removalSettings is when something is taken away.
func removalSettings() []setting {
	return []setting{
		{name: "removeDeletedSecrets", scope: ScopeLive, of: func(s subject) any { return &s.RemoveDeleted }, annotation: "remove-deleted-secrets-enabled", env: "REMOVE_DELETED_SECRETS", kind: kindBoolean, lenient: true, def: "true",
			doc: "Whether what was deleted or revoked in Conjur is removed from its destination."},
		{name: "removal.confirmations", scope: ScopeLive, of: func(s subject) any { return &s.Removal.Confirmations }, annotation: "removal-confirmations", env: "REMOVAL_CONFIRMATIONS", kind: kindInteger, min: 1, def: "2",
			doc: "How many polls, or retries in the modes `init` and `application`, must prove that a variable is gone before it is removed. New in Syncer."},
		{name: "removal.grace", scope: ScopeLive, of: func(s subject) any { return &s.Removal.Grace }, annotation: "removal-grace", env: "REMOVAL_GRACE", kind: kindDuration, def: "10s",
			doc: "The least time between the first proof that a variable is gone and its removal, in which a follower of Conjur that lags behind catches up; the modes `init` and `application` wait for it, unless `retry-count-limit` is `0`. New in Syncer."},
		{name: "removal.brake", scope: ScopeLive, of: func(s subject) any { return &s.Removal.Brake }, annotation: "removal-brake", env: "REMOVAL_BRAKE", kind: kindPercent, def: "50",
			doc: "When more than this share of an identity's variables, in percent, and more than three, are gone within one grace, their removal is held back; `off` or `0` is never. New in Syncer."},
		{name: "removal.brakeHold", scope: ScopeLive, of: func(s subject) any { return &s.Removal.BrakeHold }, annotation: "removal-brake-hold", env: "REMOVAL_BRAKE_HOLD", kind: kindDuration, least: time.Second, def: "10m",
			doc: "How long such a removal is held back. New in Syncer."},
		{name: "exitOnRevoked", scope: ScopeLive, of: func(s subject) any { return &s.ExitOnRevoked }, annotation: "exit-on-revoked", kind: kindBoolean, def: "true",
			doc: "Whether a sidecar ends with status 1 after a removal. New in Syncer."},
	}
}

// applicationSettings is how the application beside a sidecar is treated.
func applicationSettings() []setting {
	return []setting{
		{name: nameRestoreFiles, scope: ScopeLive, of: func(s subject) any { return either(s.RestoreDeletedFiles, restoreAtRefresh, restoreNever) }, annotation: "restore-deleted-files", kind: kindChoice, noun: "way to treat deleted files",
			allowed: []string{restoreAtRefresh, restoreNever}, def: restoreAtRefresh,
			doc: "When a file that the application deleted comes back: at the next refresh, or never. An application that wants its files at once makes the file `CONJUR_SECRETS_REQUESTED` in the status folder. New in Syncer."},
		{name: "secretsSizeLimit", scope: ScopeProcess, of: func(s subject) any { return &s.SecretsSizeLimit }, annotation: "secrets-size-limit", kind: kindInteger, min: 1, def: "64",
			doc: "How many MiB all files of the secrets folder may have together, as a folder in memory is the node's. A file that would go beyond it keeps what it has, with an error, and the others go on. While a file is replaced, it is there twice. New in Syncer."},
		{name: nameSignal, scope: ScopeLive, of: func(s subject) any { return &s.Signal.Name }, annotation: "restart-app-signal", kind: kindSignal,
			doc: "The signal, such as `SIGHUP`, that a sidecar sends to the application's processes after a change. The Pod needs `shareProcessNamespace: true`, and both containers the same user. Signals that only stop a process are refused."},
		{name: nameSignalUser, scope: ScopeLive, of: func(s subject) any { return &s.Signal.User }, annotation: "restart-app-user", kind: kindUser,
			doc: "Only processes of this user get the signal. New in Syncer."},
		{name: nameSignalCommand, scope: ScopeLive, of: func(s subject) any { return &s.Signal.Command }, annotation: "restart-app-command", kind: kindCommand,
			doc: "Only processes whose executable has this base name get the signal. New in Syncer."},
	}
}

// observationSettings is how the process can be watched.
func observationSettings() []setting {
	return []setting{
		{name: nameServerAddress, scope: ScopeProcess, of: func(s subject) any { return &s.Server.Address }, annotation: "server-address", env: "SERVER_ADDRESS", kind: kindAddress, follows: defaultServerAddress + " in standalone mode, else none",
			doc: "Where `standalone`, and a `sidecar` when it is set, serve their probes and metrics."},
		{name: nameStatus, scope: ScopeProcess, of: func(s subject) any { return &s.Server.Status }, annotation: "server-status", env: "SERVER_STATUS", kind: kindBoolean, def: "false",
			doc: "Whether [the status page](status.md) is served there too. New in Syncer."},
		{name: nameStatusToken, scope: ScopeProcess, of: func(s subject) any { return &s.Server.StatusTokenFile }, annotation: "server-status-token-file", env: "SERVER_STATUS_TOKEN_FILE", kind: kindText,
			doc: "A file with the bearer token that the status page's data are given for, read at each request. None: the page is for the Pod itself only, as for `kubectl port-forward`. New in Syncer."},
		{name: nameFreshness, scope: ScopeLive, of: func(s subject) any { return &s.Server.Freshness }, annotation: "health-freshness", env: "HEALTH_FRESHNESS", kind: kindDuration, least: time.Second, follows: "three refresh intervals",
			doc: "How long ago every target may have been proven fresh for the process to be ready. Not used without refresh. New in Syncer."},
		{name: nameReady, scope: ScopeLive, of: func(s subject) any { return either(s.Server.Tried, readyTried, readyDelivered) }, annotation: "health-ready", env: "HEALTH_READY", kind: kindChoice, noun: "meaning of ready",
			allowed: []string{readyDelivered, readyTried}, def: readyDelivered,
			doc: "What makes the process ready at first: that every target was delivered once, but for those that cannot be for a reason of their own; or that each was tried. New in Syncer."},
		{name: nameLogLevel, scope: ScopeLive, of: func(s subject) any { return &s.Log.Level }, annotation: "log-level", env: "LOG_LEVEL", kind: kindChoice, noun: "log level", lenient: true,
			allowed: []string{"debug", "info", "warn", "error"}, def: "info", doc: "The least severe messages that are logged."},
		{name: nameDebug, scope: ScopeLive, annotation: "debug-logging", env: "DEBUG", kind: kindBoolean, lenient: true, def: "false",
			doc: "Deprecated: use the log level `debug`, which also wins over this."},
		{name: "log.format", scope: ScopeLive, of: func(s subject) any { return &s.Log.Format }, annotation: "log-format", env: "LOG_FORMAT", kind: kindChoice, noun: "log format", lenient: true,
			allowed: []string{"text", "json"}, def: "text", doc: "The form of a log line. New in Syncer."},
		{name: "tracing.console", annotation: "log-traces", env: "LOG_TRACES", kind: kindBoolean, lenient: true, def: "false", later: true,
			doc: "Whether traces are printed. Syncer sends them; see [Traces](#traces)."},
		{name: "tracing.jaegerUrl", annotation: "jaeger-collector-url", env: "JAEGER_COLLECTOR_URL", kind: kindText, later: true,
			doc: "The Jaeger collector that traces go to; wins over `log-traces`. Jaeger takes what Syncer sends; see [Traces](#traces)."},
	}
}

// conjurSettings is how Conjur is reached.
func conjurSettings() []setting {
	return []setting{
		{name: nameApplianceURL, scope: ScopeLane, of: func(s subject) any { return &s.conjur.ApplianceURL }, env: "CONJUR_APPLIANCE_URL", kind: kindText,
			doc: "Conjur's address. Required; `https://`, or `http://` on a loopback address."},
		{name: nameAuthnURL, scope: ScopeLane, of: func(s subject) any { return &s.conjur.AuthnURL }, env: "CONJUR_AUTHN_URL", kind: kindText, follows: "plain `authn` at Conjur's address, with an API key",
			doc: "The authenticator's address, such as `https://conjur.example.com/authn-jwt/my-service`. A segment of its path names the [authenticator](#authenticators): `" + strings.Join(authenticatorNames(), "` `") + "`."},
		{name: nameAccount, scope: ScopeLane, of: func(s subject) any { return &s.conjur.Account }, env: "CONJUR_ACCOUNT", kind: kindText, doc: "Conjur's account. Required."},
		{name: nameLogin, scope: ScopeLane, of: func(s subject) any { return &s.conjur.Login }, annotation: "authn-identity", env: "CONJUR_AUTHN_LOGIN", kind: kindText,
			doc: "The identity to authenticate as, such as `host/app`. Optional for `authn-jwt` and `authn-cert`, where token and certificate can say it; `host/` may be left out for `authn-iam`, `authn-azure` and `authn-gcp`."},
		{name: nameAPIKey, scope: ScopeLane, of: func(s subject) any { return &s.conjur.APIKey }, env: "CONJUR_AUTHN_API_KEY", kind: kindText, envOnly: true, credential: true,
			doc: "The API key of the identity, for `authn`. If the configuration file has `conjur.apiKeyFile`, that wins. New in Syncer."},
		{name: nameAPIKeyFile, scope: ScopeLane, of: func(s subject) any { return &s.conjur.APIKeyFile }, env: "CONJUR_AUTHN_API_KEY_FILE", kind: kindText, credential: true,
			doc: "A file with the API key, read anew at each authentication, so that a rotated key is used without a restart; a login before the key is used instead of `CONJUR_AUTHN_LOGIN`. Set either this variable or `CONJUR_AUTHN_API_KEY`. New in Syncer."},
		{name: nameJWTTokenPath, scope: ScopeLane, of: func(s subject) any { return &s.conjur.JWTTokenPath }, annotation: "jwt-token-path", env: "JWT_TOKEN_PATH", kind: kindText, credential: true, def: "/var/run/secrets/kubernetes.io/serviceaccount/token",
			doc: "The file with the token for `authn-jwt`, read anew at each authentication. Its folder must exist."},
		{name: nameInboxPath, scope: ScopeProcess, of: func(s subject) any { return &s.conjur.InboxPath }, env: InboxVariable, kind: kindText, envOnly: true, def: DefaultInbox, follows: "`" + DefaultInbox + "`",
			doc: "Where the certificate for `authn-k8s` is taken up. Conjur's script always writes to the default; another path is for the image without a shell, and its folder must exist."},
		{name: nameInboxWait, scope: ScopeLane, of: func(s subject) any { return &s.conjur.InboxWait }, env: "CONJUR_CLIENT_CERT_RETRY_COUNT_LIMIT", kind: kindInteger, min: 1, def: "10",
			doc: "Seconds that the certificate for `authn-k8s` may take to come."},
		{name: nameAzureClientID, scope: ScopeLane, of: func(s subject) any { return &s.conjur.AzureClientID }, env: "CONJUR_AUTHN_AZURE_CLIENT_ID", kind: kindText, follows: "the system-assigned identity",
			doc: "The client id of the user-assigned identity for `authn-azure`."},
		{name: nameMetadataURL, scope: ScopeLane, of: func(s subject) any { return &s.conjur.MetadataURL }, env: "CONJUR_AUTHN_METADATA_URL", kind: kindText, follows: "the cloud's own",
			doc: "The address of the metadata service for `authn-azure` and `authn-gcp`. New in Syncer."},
		{name: nameClientCertFile, scope: ScopeLane, of: func(s subject) any { return &s.conjur.ClientCertFile }, env: "CONJUR_AUTHN_CERT_FILE", kind: kindText, credential: true,
			doc: "A PEM file with the client certificate for `authn-cert`, read anew at each authentication. New in Syncer."},
		{name: nameClientKeyFile, scope: ScopeLane, of: func(s subject) any { return &s.conjur.ClientKeyFile }, env: "CONJUR_AUTHN_CERT_KEY_FILE", kind: kindText, credential: true,
			doc: "The PEM file with its key. New in Syncer."},
		{name: "conjur.tokenTimeout", scope: ScopeLane, of: func(s subject) any { return &s.conjur.TokenTimeout }, env: "CONJUR_TOKEN_TIMEOUT", kind: kindDuration, least: time.Second, follows: "three quarters of its life",
			doc: "How long an access token of Conjur is used before a new one is asked for, at most."},
		{name: nameCertificate, scope: ScopeLane, of: func(s subject) any { return &s.conjur.SSLCertificate }, env: "CONJUR_SSL_CERTIFICATE", kind: kindText,
			doc: "The certificates, as PEM text, that Conjur's must be signed by; wins over the file. Neither: those of the system."},
		{name: nameCertFile, scope: ScopeLane, of: func(s subject) any { return &s.conjur.CertFile }, env: "CONJUR_CERT_FILE", kind: kindText,
			doc: "A PEM file with these certificates; a changed file is used without a restart."},
		{name: "conjur.httpTimeoutSeconds", scope: ScopeLane, of: func(s subject) any { return &s.conjur.HTTPTimeout }, env: "CONJUR_HTTP_TIMEOUT", kind: kindInteger, min: 1, max: 600, lenient: true, def: "60",
			doc: "Seconds that a request to Conjur may take."},
	}
}

// clusterSettings is what concerns the cluster.
func clusterSettings() []setting {
	return append(kubernetesSettings(), standaloneSettings()...)
}

func kubernetesSettings() []setting {
	return []setting{
		{name: nameK8sSecrets, scope: ScopeSources, annotation: "k8s-secrets", env: "K8S_SECRETS", kind: kindSecrets, items: secretSettings, short: true,
			doc: "The Kubernetes Secrets to fill, when the destination is `k8s_secrets`: a YAML list in the annotation, comma-separated in the environment, and in the file names or [whole definitions](#kubernetes-secrets). None: those with the label `conjur.org/managed-by-provider: \"true\"`. In the mode `standalone` only the file can list any."},
		{name: nameAllowlist, scope: ScopeSources, of: func(s subject) any { return &s.Kubernetes.Namespaces }, annotation: "namespace-allowlist", env: "NAMESPACE_ALLOWLIST", kind: kindNames,
			doc: "The namespaces that `standalone` serves, comma-separated, or `*` for all. Required there."},
		{name: nameNamespace, scope: ScopeProcess, of: func(s subject) any { return &s.Kubernetes.Namespace }, env: "MY_POD_NAMESPACE", kind: kindNamespace,
			doc: "The Pod's namespace, from the field `metadata.namespace`; required when the destination is `k8s_secrets`."},
		{name: namePodName, scope: ScopeProcess, of: func(s subject) any { return &s.Conjur.PodName }, env: "MY_POD_NAME", kind: kindText, envOnly: true,
			doc: "The Pod's name; required by the authenticator `authn-k8s`."},
		{name: nameNodeName, scope: ScopeProcess, of: func(s subject) any { return &s.Node.Name }, env: "MY_NODE_NAME", kind: kindText, envOnly: true,
			doc: "The node's name, from the field `spec.nodeName`; required by groups with [secrets of the node's own](#secrets-of-a-node). New in Syncer."},
		{name: "kubernetes.kubeconfig", scope: ScopeProcess, of: func(s subject) any { return &s.Kubernetes.Kubeconfig }, kind: kindText, follows: "`$KUBECONFIG`, else the service account of the Pod",
			doc: "The kubeconfig file that says how the API server is reached; `--kubeconfig` wins over it. New in Syncer."},
	}
}

// standaloneSettings is what only the mode standalone uses.
func standaloneSettings() []setting {
	return []setting{
		{name: "leaderElection.enabled", scope: ScopeProcess, of: func(s subject) any { return &s.Kubernetes.LeaderElection.Enabled }, kind: kindBoolean, def: "true",
			doc: "Whether the replicas of `standalone` elect one that works. New in Syncer."},
		{name: "leaderElection.leaseName", scope: ScopeProcess, of: func(s subject) any { return &s.Kubernetes.LeaderElection.Lease }, kind: kindObjectName, def: "syncer",
			doc: "The name of the Lease by which they do; two Deployments of Syncer in one namespace need two. New in Syncer."},
		{name: nameLeaseSpace, scope: ScopeProcess, of: func(s subject) any { return &s.Kubernetes.LeaderElection.Namespace }, kind: kindNamespace, follows: "the Pod's namespace",
			doc: "The namespace of the Lease. New in Syncer."},
		{name: "leaderElection.leaseDuration", scope: ScopeProcess, of: func(s subject) any { return &s.Kubernetes.LeaderElection.Duration }, kind: kindDuration, least: 3 * time.Second, def: "15s",
			doc: "How long a replica that is gone keeps the Lease. New in Syncer."},
		{name: "restarts.quietPeriod", scope: ScopeLive, of: func(s subject) any { return &s.Kubernetes.Restarts.QuietPeriod }, kind: kindDuration, least: time.Second, def: "10s",
			doc: "How long nothing more must change before workloads are restarted, so that several changes are one restart. New in Syncer."},
		{name: "restarts.perHour", scope: ScopeLive, of: func(s subject) any { return &s.Kubernetes.Restarts.PerHour }, kind: kindInteger, min: 1, def: "60",
			doc: "How many restarts of workloads there may be in one namespace in an hour; the others wait. New in Syncer."},
		{name: "namespaceMemory", scope: ScopeProcess, of: func(s subject) any { return &s.Kubernetes.NamespaceMemory }, kind: kindInteger, min: 1, def: "12",
			doc: "How many MiB of memory the Secrets of one namespace may need, by the [budget](install.md#memory). Syncer leaves a Secret that would exceed it as it is, and an Event says so. New in Syncer."},
	}
}
