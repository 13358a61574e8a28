{{/*
Syncer's configuration file: the value config, completed by the settings that
follow from the release.
*/}}
{{- define "syncer.config" -}}
{{- $config := deepCopy .Values.config -}}
{{- $conjur := $config.conjur | default dict -}}
{{- $kubernetes := $config.kubernetes | default dict -}}
{{- range $key, $value := $conjur }}{{ if kindIs "string" $value }}{{ if not $value }}{{ $_ := unset $conjur $key }}{{ end }}{{ end }}{{ end -}}
{{- if and (not $conjur.applianceUrl) (not .Values.credentials.connectConfigMap) -}}
{{- fail "config.conjur.applianceUrl: not set; give Conjur's address, such as https://conjur.example.com, or a ConfigMap with it as credentials.connectConfigMap" -}}
{{- end -}}
{{- if and (not $conjur.account) (not .Values.credentials.connectConfigMap) -}}
{{- fail "config.conjur.account: not set; give Conjur's account" -}}
{{- end -}}
{{- if .Values.credentials.apiKey.secretName -}}
{{- $_ := set $conjur "apiKeyFile" (default "/etc/syncer/conjur/api-key" $conjur.apiKeyFile) -}}
{{- else -}}
{{- $_ := set $conjur "jwtTokenPath" (default "/var/run/secrets/conjur/token" $conjur.jwtTokenPath) -}}
{{- end -}}
{{- if or .Values.credentials.certificate.configMapName .Values.credentials.certificate.secretName -}}
{{- $_ := set $conjur "certFile" (default "/etc/syncer/certificate/ca.crt" $conjur.certFile) -}}
{{- end -}}
{{- $_ := set $config "conjur" $conjur -}}
{{- $_ := set $config "secretsDestination" "k8s_secrets" -}}
{{- if eq .Values.shape "job" -}}
{{- $_ := set $config "containerMode" "application" -}}
{{- else -}}
{{- $_ := set $config "containerMode" "standalone" -}}
{{- $server := $config.server | default dict -}}
{{- $_ := set $server "address" (printf ":%d" (int .Values.port)) -}}
{{- $_ := set $config "server" $server -}}
{{- if not $config.refresh }}{{ $_ := set $config "refresh" (dict "enabled" true) }}{{ end -}}
{{- if not (or $kubernetes.namespaces $kubernetes.namespaceSelector) -}}
{{- $_ := set $kubernetes "namespaces" (include "syncer.namespaces" . | fromJsonArray) -}}
{{- end -}}
{{- $election := $config.leaderElection | default dict -}}
{{- $_ := set $election "leaseName" (include "syncer.fullname" .) -}}
{{- $_ := set $config "leaderElection" $election -}}
{{- end -}}
{{- if $kubernetes }}{{ $_ := set $config "kubernetes" $kubernetes }}{{ end -}}
{{ toYaml $config }}
{{- end -}}

{{/* "true" when the replicas elect a leader. */}}
{{- define "syncer.elects" -}}
{{- $election := .Values.config.leaderElection | default dict -}}
{{- if and (eq .Values.shape "deployment") (ne (toString $election.enabled) "false") -}}true{{- end -}}
{{- end -}}
