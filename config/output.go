package config

import (
	"errors"
	"fmt"
	"path"

	"github.com/secretsync/syncer/pkg/targets"
)

// Validation is the outcome of a Load for programs: an object with the lists
// "errors" and "warnings", each item with "key" and "message".
type Validation struct {
	Errors   []Problem `json:"errors"`
	Warnings []Problem `json:"warnings"`
}

// NewValidation makes it from what Load returns. Its lists are never nil, so
// that they are lists in JSON too.
func NewValidation(warnings []Problem, err error) Validation {
	v := Validation{Errors: []Problem{}, Warnings: append([]Problem{}, warnings...)}
	var invalid *InvalidError
	switch {
	case errors.As(err, &invalid):
		v.Errors = append(v.Errors, invalid.Problems...)
	case err != nil:
		v.Errors = append(v.Errors, Problem{Message: err.Error()})
	}
	return v
}

// Effective is a Config for people and programs to read: everything that is
// in effect, secrets left out. Durations are in Go's form, such as "5m0s".
type Effective struct {
	ContainerMode        Mode                `json:"containerMode"`
	SecretsDestination   Destination         `json:"secretsDestination"`
	Refresh              effectiveRefresh    `json:"refresh"`
	Retry                effectiveRetry      `json:"retry"`
	RemoveDeletedSecrets bool                `json:"removeDeletedSecrets"`
	Removal              effectiveRemoval    `json:"removal"`
	ExitOnRevoked        bool                `json:"exitOnRevoked"`
	RestoreDeletedFiles  string              `json:"restoreDeletedFiles"` // "refresh" or "never"
	RestartApp           Signal              `json:"restartApp,omitzero"`
	Server               effectiveServer     `json:"server,omitzero"`
	Health               effectiveHealth     `json:"health,omitzero"`
	Log                  Log                 `json:"log"`
	Conjur               effectiveConjur     `json:"conjur"`
	Identities           []effectiveIdentity `json:"identities,omitempty"` // those with a name
	Kubernetes           effectiveKubernetes `json:"kubernetes,omitzero"`
	LeaderElection       *effectiveElection  `json:"leaderElection,omitempty"`
	Restarts             *effectiveRestarts  `json:"restarts,omitempty"`
	Folders              Folders             `json:"folders"`
	Targets              []effectiveTarget   `json:"targets"`
}

type effectiveRefresh struct {
	Enabled  bool   `json:"enabled"`
	Interval string `json:"interval,omitempty"`
}

type effectiveRetry struct {
	Limit    int    `json:"limit"`
	Interval string `json:"interval"`
}

type effectiveRemoval struct {
	Confirmations int    `json:"confirmations"`
	Grace         string `json:"grace"`
	Brake         int    `json:"brake"` // percent; 0 is off
	BrakeHold     string `json:"brakeHold"`
}

type effectiveServer struct {
	Address string `json:"address,omitempty"`
}

type effectiveHealth struct {
	Freshness string `json:"freshness,omitempty"`
	Ready     string `json:"ready"`
}

type effectiveConjur struct {
	ApplianceURL string    `json:"applianceUrl,omitempty"`
	AuthnURL     string    `json:"authnUrl,omitempty"`
	AuthnType    AuthnType `json:"authnType,omitempty"`
	Account      string    `json:"account,omitempty"`
	Login        string    `json:"login,omitempty"`
	APIKeyFile   string    `json:"apiKeyFile,omitempty"`
	JWTTokenPath string    `json:"jwtTokenPath,omitempty"`
	// InboxPath and InboxWait are where, and for how long, the certificate
	// for authn-k8s is waited for.
	InboxPath      string `json:"clientCertPath,omitempty"`
	InboxWait      string `json:"clientCertWait,omitempty"`
	AzureClientID  string `json:"azureClientId,omitempty"`
	MetadataURL    string `json:"metadataUrl,omitempty"`
	ClientCertFile string `json:"clientCertFile,omitempty"`
	ClientKeyFile  string `json:"clientKeyFile,omitempty"`
	TokenTimeout   string `json:"tokenTimeout,omitempty"`
	// Certificates is where the trusted ones are from: "text", a file's path,
	// or "system".
	Certificates string `json:"certificates"`
	HTTPTimeout  string `json:"httpTimeout"`
}

// effectiveTarget is one target of an Effective.
type effectiveTarget struct {
	Key      targets.Key    `json:"key"`
	Group    string         `json:"group"`
	Path     string         `json:"path"` // with the secrets folder in front
	Mode     string         `json:"mode"` // octal, such as "0644"
	Format   targets.Format `json:"format"`
	Template string         `json:"template,omitempty"` // "inline", or the file's path
	// TemplateConfigMap is where the template is, as "name/key".
	TemplateConfigMap string          `json:"templateConfigMap,omitempty"`
	Entries           []targets.Entry `json:"entries"`
}

// NewEffective makes it from a Config.
func NewEffective(cfg *Config) Effective {
	e := Effective{
		ContainerMode:        cfg.Mode,
		SecretsDestination:   cfg.Destination,
		Refresh:              effectiveRefresh{Enabled: cfg.Refresh.Enabled},
		Retry:                effectiveRetry{cfg.Retry.Limit, cfg.Retry.Interval.String()},
		RemoveDeletedSecrets: cfg.RemoveDeleted,
		Removal:              effectiveRemoval{cfg.Removal.Confirmations, cfg.Removal.Grace.String(), cfg.Removal.Brake, cfg.Removal.BrakeHold.String()},
		ExitOnRevoked:        cfg.ExitOnRevoked,
		RestoreDeletedFiles:  restoreAtRefresh,
		RestartApp:           cfg.Signal,
		Server:               effectiveServer{cfg.Server.Address},
		Log:                  cfg.Log,
		Conjur:               newEffectiveConjur(cfg.Conjur),
		Kubernetes:           newEffectiveKubernetes(cfg.Kubernetes, cfg.Destination),
		Folders:              cfg.Folders,
		Targets:              []effectiveTarget{},
	}
	if cfg.Refresh.Enabled {
		e.Refresh.Interval = cfg.Refresh.Interval.String()
	}
	if !cfg.RestoreDeletedFiles {
		e.RestoreDeletedFiles = restoreNever
	}
	e.Health.Ready = readyDelivered
	if cfg.Server.Tried {
		e.Health.Ready = readyTried
	}
	if cfg.Server.Freshness > 0 {
		e.Health.Freshness = cfg.Server.Freshness.String()
	}
	e.addStandalone(cfg)
	for _, t := range cfg.Targets {
		e.Targets = append(e.Targets, newEffectiveTarget(cfg.Folders, t))
	}
	return e
}

func newEffectiveConjur(c Conjur) effectiveConjur {
	e := effectiveConjur{
		ApplianceURL: c.ApplianceURL, AuthnURL: c.AuthnURL, AuthnType: c.AuthnType,
		Account: c.Account, Login: c.Login, Certificates: "system", HTTPTimeout: c.HTTPTimeout.String(),
	}
	switch c.AuthnType {
	case AuthnAPIKey:
		e.APIKeyFile = c.APIKeyFile
	case AuthnJWT:
		e.JWTTokenPath = c.JWTTokenPath
	case AuthnK8s:
		e.InboxPath, e.InboxWait = c.InboxPath, c.InboxWait.String()
	case AuthnAzure:
		e.AzureClientID, e.MetadataURL = c.AzureClientID, c.MetadataURL
	case AuthnGCP:
		e.MetadataURL = c.MetadataURL
	case AuthnCert:
		e.ClientCertFile, e.ClientKeyFile = c.ClientCertFile, c.ClientKeyFile
	}
	if c.TokenTimeout > 0 {
		e.TokenTimeout = c.TokenTimeout.String()
	}
	switch {
	case c.SSLCertificate != "":
		e.Certificates = "text"
	case c.CertFile != "":
		e.Certificates = c.CertFile
	}
	return e
}

func newEffectiveTarget(folders Folders, t *targets.Target) effectiveTarget {
	e := effectiveTarget{
		Key: t.Key, Group: t.Group, Format: t.Format,
		Path:    path.Join(folders.Secrets, t.File.Path),
		Mode:    fmt.Sprintf("%04o", t.File.Mode.Perm()),
		Entries: []targets.Entry{},
	}
	e.Template, e.TemplateConfigMap = effectiveTemplate(folders, t)
	e.Entries = append(e.Entries, t.Entries...)
	return e
}

// effectiveTemplate says where a template is.
func effectiveTemplate(folders Folders, t *targets.Target) (template, configMap string) {
	switch {
	case t.Template.Inline != "":
		return "inline", ""
	case t.Template.File != "":
		return path.Join(folders.Templates, t.Template.File), ""
	case t.Template.ConfigMap != (targets.ConfigMapKey{}):
		return "", t.Template.ConfigMap.Name + "/" + t.Template.ConfigMap.Key
	}
	return "", ""
}
