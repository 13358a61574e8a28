package config

// file is the configuration file: what it is decoded into, and what its schema
// is made from. The tables of settings say what each leaf means and may be;
// they know it by the path that the keys make here.
type file struct {
	ContainerMode      textField `yaml:"containerMode"`
	SecretsDestination textField `yaml:"secretsDestination"`
	Refresh            struct {
		Enabled  booleanField `yaml:"enabled"`
		Interval textField    `yaml:"interval"`
	} `yaml:"refresh"`
	Retry struct {
		Limit           integerField `yaml:"limit"`
		IntervalSeconds integerField `yaml:"intervalSeconds"`
	} `yaml:"retry"`
	RemoveDeletedSecrets booleanField `yaml:"removeDeletedSecrets"`
	Removal              struct {
		Confirmations integerField `yaml:"confirmations"`
		Grace         textField    `yaml:"grace"`
		Brake         percentField `yaml:"brake"`
		BrakeHold     textField    `yaml:"brakeHold"`
	} `yaml:"removal"`
	ExitOnRevoked       booleanField `yaml:"exitOnRevoked"`
	RestoreDeletedFiles textField    `yaml:"restoreDeletedFiles"`
	RestartApp          struct {
		Signal  textField `yaml:"signal"`
		User    textField `yaml:"user"`
		Command textField `yaml:"command"`
	} `yaml:"restartApp"`
	Server struct {
		Address textField `yaml:"address"`
	} `yaml:"server"`
	Health struct {
		Freshness textField `yaml:"freshness"`
		Ready     textField `yaml:"ready"`
	} `yaml:"health"`
	Log struct {
		Level  textField    `yaml:"level"`
		Debug  booleanField `yaml:"debug"`
		Format textField    `yaml:"format"`
	} `yaml:"log"`
	Tracing struct {
		Console   booleanField `yaml:"console"`
		JaegerURL textField    `yaml:"jaegerUrl"`
	} `yaml:"tracing"`
	Conjur         fileConjur     `yaml:"conjur"`
	Kubernetes     fileKubernetes `yaml:"kubernetes"`
	LeaderElection struct {
		Enabled       booleanField `yaml:"enabled"`
		LeaseName     textField    `yaml:"leaseName"`
		Namespace     textField    `yaml:"namespace"`
		LeaseDuration textField    `yaml:"leaseDuration"`
	} `yaml:"leaderElection"`
	Restarts struct {
		QuietPeriod textField    `yaml:"quietPeriod"`
		PerHour     integerField `yaml:"perHour"`
	} `yaml:"restarts"`
	Targets    listField[fileTarget]   `yaml:"targets" doc:"The secret groups, each a file that is kept in sync."`
	Identities listField[fileIdentity] `yaml:"identities" doc:"Identities that Conjur is asked as besides the process's own, and whom they serve."`
}

type fileConjur struct {
	ApplianceURL       textField    `yaml:"applianceUrl"`
	AuthnURL           textField    `yaml:"authnUrl"`
	Account            textField    `yaml:"account"`
	Login              textField    `yaml:"login"`
	APIKeyFile         textField    `yaml:"apiKeyFile"`
	JWTTokenPath       textField    `yaml:"jwtTokenPath"`
	InboxWait          integerField `yaml:"clientCertWaitSeconds"`
	AzureClientID      textField    `yaml:"azureClientId"`
	MetadataURL        textField    `yaml:"metadataUrl"`
	ClientCertFile     textField    `yaml:"clientCertFile"`
	ClientKeyFile      textField    `yaml:"clientKeyFile"`
	TokenTimeout       textField    `yaml:"tokenTimeout"`
	SSLCertificate     textField    `yaml:"sslCertificate"`
	CertFile           textField    `yaml:"certFile"`
	HTTPTimeoutSeconds integerField `yaml:"httpTimeoutSeconds"`
}

type fileKubernetes struct {
	Namespace  textField             `yaml:"namespace"`
	Secrets    listField[fileSecret] `yaml:"secrets"`
	Namespaces namesField            `yaml:"namespaces"`
	Kubeconfig textField             `yaml:"kubeconfig"`
}

// fileTarget is a secret group that becomes a file.
type fileTarget struct {
	Name        textField `yaml:"name"`
	Path        textField `yaml:"path"`
	Permissions textField `yaml:"permissions"`
	fileGroup
}

// fileGroup is what makes one text of several variables.
type fileGroup struct {
	Secrets           entriesField `yaml:"secrets"`
	PolicyPath        textField    `yaml:"policyPath"`
	Format            textField    `yaml:"format"`
	Template          textField    `yaml:"template"`
	TemplateConfigMap textField    `yaml:"templateConfigMap"`
}

// fileSecret is a Kubernetes Secret; a text stands for one with this name.
type fileSecret struct {
	Name      textField              `yaml:"name"`
	Namespace textField              `yaml:"namespace"`
	Create    booleanField           `yaml:"create"`
	Type      textField              `yaml:"type"`
	Map       mapField[fileVariable] `yaml:"map"`
	Groups    mapField[fileGroup]    `yaml:"groups"`
	Restart   namesField             `yaml:"restart"`
}

// fileVariable is where a data key's value is from; a text stands for the id.
type fileVariable struct {
	ID          textField `yaml:"id"`
	ContentType textField `yaml:"contentType"`
}

type fileIdentity struct {
	Name       textField  `yaml:"name"`
	Namespaces namesField `yaml:"namespaces"`
	Secrets    namesField `yaml:"secrets"`
	Conjur     struct {
		Login          textField `yaml:"login"`
		AuthnURL       textField `yaml:"authnUrl"`
		Account        textField `yaml:"account"`
		APIKeyFile     textField `yaml:"apiKeyFile"`
		JWTTokenPath   textField `yaml:"jwtTokenPath"`
		AzureClientID  textField `yaml:"azureClientId"`
		ClientCertFile textField `yaml:"clientCertFile"`
		ClientKeyFile  textField `yaml:"clientKeyFile"`
	} `yaml:"conjur"`
}

// The table of each type that a list or a map holds.

func (file) table() []setting         { return settings() }
func (fileTarget) table() []setting   { return targetSettings() }
func (fileGroup) table() []setting    { return secretGroupSettings() }
func (fileSecret) table() []setting   { return secretSettings() }
func (fileVariable) table() []setting { return variableSettings() }
func (fileIdentity) table() []setting { return identitySettings() }

// What a text in the place of a map stands for.

func (s *fileSecret) short() *textField   { return &s.Name }
func (v *fileVariable) short() *textField { return &v.ID }
