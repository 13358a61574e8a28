package config

// The following types declare settings of the configuration file whose values other
// packages keep. The fields have no names. The tag `in` names the field of a targets.Target
// or a definitions.SecretDefinition with the effective value.

// target contains the settings of one file.
type target struct {
	_ string `name:"name" scope:"live" is:"required"`
	_ group
}

// group contains the settings of one secret group, which annotations may set too.
type group struct {
	_ string `name:"secrets" in:"Entries" annotation:"conjur-secrets." kind:"entries" scope:"live" is:"required"`
	_ string `name:"policyPath" annotation:"conjur-secrets-policy-path." scope:"live"`
	_ string `name:"nodeSecrets" annotation:"node-secrets." kind:"nodeSecrets" scope:"live" default:"false"`
	_ string `name:"path" in:"File.Path" annotation:"secret-file-path." scope:"live" follows:"\"{group}.{format}\"; \"{group}.out\" for a template, \"{group}\" for a directory"`
	_ string `name:"format" in:"Format" annotation:"secret-file-format." scope:"live" noun:"format" allowed:"yaml json dotenv bash properties template java-properties env-file kubernetes-env directory jwks jwks-public" default:"yaml"`
	_ string `name:"dotenvReaders" in:"DotenvReaders" annotation:"dotenv-readers." kind:"texts" scope:"live"`
	_ string `name:"permissions" in:"File.Mode" annotation:"secret-file-permissions." kind:"permissions" scope:"live" follows:"\"rw-r--r--\""`
	_ string `name:"template" in:"Template.Inline" annotation:"secret-file-template." scope:"live" follows:"the file \"{group}.tpl\" of the templates folder"`
	_ string `name:"templateConfigMap" in:"Template.ConfigMap" annotation:"secret-file-template-configmap." kind:"configMap" scope:"sources"`
}

// listedSecret contains the settings of one Kubernetes Secret. The types are those of
// Secrets with user content. They exclude types that Kubernetes uses to grant access or
// to keep records.
type listedSecret struct {
	_ string              `name:"name" in:"Name" kind:"objectName" scope:"sources" is:"required"`
	_ string              `name:"namespace" in:"Namespace" kind:"namespace" scope:"sources" follows:"the Pod's namespace"`
	_ bool                `name:"create" in:"Configured.Secret.Create" scope:"live" default:"false"`
	_ string              `name:"type" in:"Configured.Secret.Type" scope:"live" noun:"type of Secret that Syncer makes" allowed:"Opaque kubernetes.io/tls kubernetes.io/basic-auth kubernetes.io/ssh-auth kubernetes.io/dockerconfigjson kubernetes.io/dockercfg" default:"Opaque"`
	_ map[string]variable `name:"map" in:"Configured.Entries" scope:"live" is:"short"`
	_ map[string]dataKey  `name:"groups" in:"Configured.Secret.Groups" scope:"live"`
	_ []string            `name:"restart" in:"Configured.Secret.Restart" scope:"live"`
	_ []string            `name:"pullSecretFor" in:"Configured.Secret.PullFor" scope:"live"`
}

// variable contains the settings of a value of a Secret's map.
type variable struct {
	_ string `name:"id" scope:"live" is:"required"`
	_ string `name:"contentType" scope:"live" noun:"content type" allowed:"text base64" default:"text"`
}

// dataKey contains the settings of a group of a Secret, which has no file.
type dataKey struct {
	_ string `name:"secrets" kind:"entries" scope:"live" is:"required"`
	_ string `name:"policyPath" scope:"live"`
	_ string `name:"format" scope:"live" noun:"format" allowed:"yaml json dotenv bash properties template java-properties env-file kubernetes-env jwks jwks-public" follows:"\"template\" when there is one, else \"yaml\""`
	_ string `name:"dotenvReaders" kind:"texts" scope:"live"`
	_ string `name:"template" scope:"live"`
	_ string `name:"templateConfigMap" kind:"configMap" scope:"live"` // the watches follow what the Secrets define
}

// adopted contains the settings of a variable that becomes a part of a set.
type adopted struct {
	_ string `name:"variable" is:"required"`
}
