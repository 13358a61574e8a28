package config

import (
	"slices"

	"github.com/secretsync/syncer/pkg/targets"
)

// groupSettings is the table of what may be set for each secret group.
func groupSettings() []setting {
	return []setting{
		{name: nameSecrets, scope: ScopeLive, of: func(s subject) any { return &s.target.Entries }, annotation: "conjur-secrets.", kind: kindEntries, required: true,
			doc: "The secrets of the group: a YAML list of `- id`, `- alias: id`, each with an optional `content-type: base64`, in [folders](#entries-of-a-folder) a `path` and a `mode`, or `*` for all. Required: it defines the group."},
		{name: namePolicyPath, scope: ScopeLive, annotation: "conjur-secrets-policy-path.", kind: kindText,
			doc: "A path put in front of the group's variables."},
		{name: nameNodeSecrets, scope: ScopeLive, annotation: "node-secrets.", kind: kindNodeSecrets, def: "false",
			doc: "Whether a variable of the [node's own](#secrets-of-a-node) is read first: for all secrets of the group, or those of the aliases, comma-separated. With `required` there is no general one. New in Syncer."},
		{name: namePath, scope: ScopeLive, of: func(s subject) any { return &s.target.File.Path }, annotation: "secret-file-path.", kind: kindText, follows: "`{group}.{format}`; `{group}.out` for a template, `{group}` for a directory",
			doc: "The file, or for the format `directory` the folder, relative to the secrets folder, which it must not leave; a file's path that ends in `/` is the folder of the default file."},
		{name: nameFormat, scope: ScopeLive, of: func(s subject) any { return &s.target.Format }, annotation: "secret-file-format.", kind: kindChoice, noun: "format", allowed: formatNames(), def: string(targets.Formats()[0]),
			doc: "How the file is laid out. `java-properties`, `env-file` and `directory` (one file for each alias) are new in Syncer."},
		{name: namePermissions, scope: ScopeLive, of: func(s subject) any { return &s.target.File.Mode }, annotation: "secret-file-permissions.", kind: kindPermissions, def: "`rw-r--r--`",
			doc: "The file's mode as `ls` shows it; the owner must be able to read and write."},
		{name: nameTemplate, scope: ScopeLive, of: func(s subject) any { return []string{s.target.Template.Inline, s.target.Template.File} }, annotation: "secret-file-template.", kind: kindText, follows: "the file `{group}.tpl` of the templates folder",
			doc: "The Go text/template of the format `template`."},
		{name: nameConfigMap, scope: ScopeSources, of: func(s subject) any { return &s.target.Template.ConfigMap }, annotation: "secret-file-template-configmap.", kind: kindConfigMap,
			doc: "Where in the cluster the template is, instead: a ConfigMap of the namespace and a key of its data. A changed ConfigMap is rendered within a second. New in Syncer."},
	}
}

// targetSettings is the table of an item of the file's list of targets.
func targetSettings() []setting {
	return append([]setting{
		{name: nameName, scope: ScopeLive, kind: kindText, required: true, doc: "The name of the group; no two may have one name."},
	}, groupSettings()...)
}

// secretSettings is the table of an item of the file's list of Secrets.
func secretSettings() []setting {
	return []setting{
		{name: nameName, scope: ScopeSources, of: func(s subject) any { return &s.secret.Name }, kind: kindObjectName, required: true, doc: "The Secret's name."},
		{name: nameItsNamespace, scope: ScopeSources, of: func(s subject) any { return &s.secret.Namespace }, kind: kindNamespace, follows: "the Pod's namespace", doc: "Its namespace; another than the Pod's only in the mode `standalone`."},
		{name: nameCreate, scope: ScopeLive, of: func(s subject) any { return s.configured().Secret.Create }, kind: kindBoolean, def: "false",
			doc: "Whether the Secret is made when it is missing. Without it a missing Secret is reported, and filled when it appears."},
		{name: nameType, scope: ScopeLive, of: func(s subject) any { return s.configured().Secret.Type }, kind: kindChoice, noun: "type of Secret that Syncer makes", allowed: secretTypes(), def: "Opaque",
			doc: "The type of a Secret that is made. There are no others, since some, such as that of service-account tokens, grant access to the cluster."},
		{name: nameMap, scope: ScopeLive, of: func(s subject) any { return s.configured().Entries }, kind: kindMap, items: variableSettings, short: true,
			doc: "Data keys and their variables, `key: id` or `key: {id: …, contentType: base64}`, as in a `conjur-map`. It is added to the Secret's own, and wins where both have a key."},
		{name: nameGroups, scope: ScopeLive, of: func(s subject) any { return s.configured().Secret.Groups }, kind: kindMap, items: secretGroupSettings,
			doc: "Data keys that are made of several variables, each by the settings of a group below."},
		{name: nameRestart, scope: ScopeLive, of: func(s subject) any { return s.configured().Secret.Restart }, kind: kindNames,
			doc: "The workloads of the namespace that are restarted when the data have changed, such as `deployment/shop`; in the mode `standalone`."},
		{name: namePullSecretFor, scope: ScopeLive, of: func(s subject) any { return s.configured().Secret.PullFor }, kind: kindNames,
			doc: "The service accounts of the namespace whose images are pulled with the Secret, such as `default`; in the mode `standalone`. See [below](#pulling-images)."},
	}
}

// secretGroupSettings is the table of a group of a Secret, which has no file.
func secretGroupSettings() []setting {
	table := slices.DeleteFunc(groupSettings(), func(s setting) bool {
		return s.name == namePath || s.name == namePermissions || s.name == nameNodeSecrets
	})
	for i := range table {
		switch s := &table[i]; s.name {
		case nameFormat:
			s.allowed = slices.DeleteFunc(s.allowed, func(name string) bool { return name == string(targets.FormatDirectory) })
			s.doc, s.follows = "How the value is laid out.", "`template` when there is one, else `yaml`"
		case nameTemplate:
			s.follows = ""
		case nameConfigMap:
			s.scope = ScopeLive // the watches follow what the Secrets define
		}
	}
	return table
}

// variableSettings is the table of a value of a Secret's map.
func variableSettings() []setting {
	return []setting{
		{name: nameID, scope: ScopeLive, kind: kindText, required: true, doc: "The variable's id."},
		{name: nameContentType, scope: ScopeLive, kind: kindChoice, noun: "content type", allowed: []string{string(targets.ContentText), string(targets.ContentBase64)}, def: "text",
			doc: "`base64`: the value is decoded."},
	}
}

// identitySettings is the table of an item of the file's list of identities.
func identitySettings() []setting {
	return []setting{
		{name: nameName, scope: ScopeLane, kind: kindLabel, required: true, doc: "What the identity is called in logs and metrics: lower-case letters, digits and `-`."},
		{name: nameNamespaces, scope: ScopeLive, of: func(s subject) any { return &s.identity.Namespaces }, kind: kindNames, doc: "The namespaces whose Secrets are filled as this identity."},
		{name: nameSecrets, scope: ScopeLive, of: func(s subject) any { return &s.identity.Secrets }, kind: kindNames, doc: "Single Secrets, each as `namespace/name`; they win over the namespaces of another identity."},
		{name: nameLogin, scope: ScopeLane, of: func(s subject) any { return &s.conjur.Login }, kind: kindText, doc: "The identity to authenticate as, such as `host/shop`. Optional for `authn-jwt` and `authn-cert`."},
		{name: nameAuthnURL, scope: ScopeLane, of: func(s subject) any { return &s.conjur.AuthnURL }, kind: kindText, follows: "plain `authn` with an API key, else the process's authenticator", doc: "The authenticator's address."},
		{name: nameAccount, scope: ScopeLane, of: func(s subject) any { return &s.conjur.Account }, kind: kindText, follows: "the process's account", doc: "Conjur's account."},
		{name: nameAPIKeyFile, scope: ScopeLane, of: func(s subject) any { return &s.conjur.APIKeyFile }, kind: kindText, doc: "The file with its API key, read at each authentication; a login before the key is used instead of `conjur.login`."},
		{name: nameJWTTokenPath, scope: ScopeLane, of: func(s subject) any { return &s.conjur.JWTTokenPath }, kind: kindText, follows: "the process's file", doc: "The file with its token for `authn-jwt`, read at each authentication."},
		{name: nameAzureClientID, scope: ScopeLane, of: func(s subject) any { return &s.conjur.AzureClientID }, kind: kindText, follows: "the process's", doc: "The client id of its user-assigned identity for `authn-azure`."},
		{name: nameClientCertFile, scope: ScopeLane, of: func(s subject) any { return &s.conjur.ClientCertFile }, kind: kindText, follows: "the process's file", doc: "The PEM file with its certificate for `authn-cert`, read at each authentication."},
		{name: nameClientKeyFile, scope: ScopeLane, of: func(s subject) any { return &s.conjur.ClientKeyFile }, kind: kindText, follows: "the process's file", doc: "The PEM file with the key."},
	}
}
