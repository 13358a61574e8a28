{{/*
The served namespaces, as a JSON list: those of the listed Secrets, else those
of the configuration, else the release's namespace. ["*"] means all.
A selector may match any of them.
*/}}
{{- define "syncer.namespaces" -}}
{{- $kubernetes := .Values.config.kubernetes | default dict -}}
{{- $namespaces := list -}}
{{- range $secret := $kubernetes.secrets -}}
{{- $namespaces = append $namespaces (include "syncer.namespaceOf" (list $ $secret)) -}}
{{- end -}}
{{- if include "syncer.divides" . -}}
{{- $namespaces = list "*" -}}
{{- else if not $namespaces -}}
{{- $namespaces = eq .Values.shape "job" | ternary list ($kubernetes.namespaces | default list) | default (list .Release.Namespace) -}}
{{- end -}}
{{ $namespaces | uniq | sortAlpha | toJson }}
{{- end -}}

{{/* "true" when Deployments divide the namespaces by a label selector. */}}
{{- define "syncer.divides" -}}
{{- if and (eq .Values.shape "deployment") (.Values.config.kubernetes | default dict).namespaceSelector -}}true{{- end -}}
{{- end -}}

{{/* The namespace of an item of config.kubernetes.secrets: a name, or a map. */}}
{{- define "syncer.namespaceOf" -}}
{{- $root := index . 0 -}}
{{- $secret := index . 1 -}}
{{- if kindIs "map" $secret }}{{ $secret.namespace | default $root.Release.Namespace }}{{ else }}{{ $root.Release.Namespace }}{{ end -}}
{{- end -}}

{{/*
The objects that the Secrets of one namespace need, as a JSON object. "secrets"
and "create" are names; an empty list means any. "configMaps", "workloads" and
"accounts" are names; "*" means any. The context is (list $ NAMESPACE).
*/}}
{{- define "syncer.needs" -}}
{{- $root := index . 0 -}}
{{- $namespace := index . 1 -}}
{{- $secrets := list -}}
{{- $create := list -}}
{{- $configMaps := $root.Values.access.configMaps -}}
{{- $workloads := $root.Values.access.workloads -}}
{{- $accounts := $root.Values.access.serviceAccounts -}}
{{- range $secret := ($root.Values.config.kubernetes | default dict).secrets -}}
{{- if eq $namespace (include "syncer.namespaceOf" (list $root $secret)) -}}
{{- if kindIs "map" $secret -}}
{{- $secrets = append $secrets $secret.name -}}
{{- if $secret.create }}{{ $create = append $create $secret.name }}{{ end -}}
{{- range $secret.restart }}{{ $workloads = append $workloads (lower .) }}{{ end -}}
{{- range $secret.pullSecretFor }}{{ $accounts = append $accounts . }}{{ end -}}
{{- range $group := $secret.groups -}}
{{- with $group.templateConfigMap }}{{ $configMaps = append $configMaps (splitList "/" . | first) }}{{ end -}}
{{- end -}}
{{- else -}}
{{- $secrets = append $secrets $secret -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if eq $root.Values.shape "job" }}{{ $workloads = list }}{{ $accounts = list }}{{ end -}}
{{ dict "secrets" ($secrets | uniq | sortAlpha) "create" ($create | uniq | sortAlpha) "configMaps" ($configMaps | uniq | sortAlpha) "workloads" ($workloads | uniq | sortAlpha) "accounts" ($accounts | uniq | sortAlpha) | toJson }}
{{- end -}}

{{/* The rules of the Role for one namespace. The context is (list $ NAMESPACE). */}}
{{- define "syncer.rules" -}}
{{- $root := index . 0 -}}
{{- $needs := include "syncer.needs" . | fromJson -}}
{{- $watches := ne $root.Values.shape "job" -}}
# Reads and fills Secrets; never deletes one.
- apiGroups: [""]
  resources: [secrets]
  {{- if $watches }}
  verbs: [get, list, watch, patch]
  {{- else if $needs.secrets }}
  verbs: [get, patch]
  {{- else }}
  verbs: [get, list, patch]
  {{- end }}
  {{- with $needs.secrets }}
  resourceNames: {{ toJson . }}
  {{- end }}
{{- with $needs.create }}
- apiGroups: [""]
  resources: [secrets]
  verbs: [create]
  resourceNames: {{ toJson . }}
{{- end }}
# Reports each change at the Secret.
- apiGroups: [""]
  resources: [events]
  verbs: [create, patch]
{{- with $needs.configMaps }}
# Reads templates.
- apiGroups: [""]
  resources: [configmaps]
  verbs: {{ $watches | ternary (list "get" "list" "watch") (list "get") | toJson }}
  {{- if not (has "*" .) }}
  resourceNames: {{ toJson . }}
  {{- end }}
{{- end }}
{{- if $needs.workloads }}
# Restarts workloads when the data of their Secrets changed. If another client reverts a
# restart, only the Pods show whether it was complete.
- apiGroups: [""]
  resources: [pods]
  verbs: [list]
{{- range $kind := list "deployment" "statefulset" "daemonset" }}
{{- $names := list }}
{{- range $needs.workloads }}
{{- if hasPrefix (print $kind "/") . }}{{ $names = append $names (trimPrefix (print $kind "/") .) }}{{ end }}
{{- end }}
{{- if or $names (has "*" $needs.workloads) }}
- apiGroups: [apps]
  resources: [{{ $kind }}s]
  verbs: [get, patch]
  {{- if not (has "*" $needs.workloads) }}
  resourceNames: {{ toJson $names }}
  {{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- with $needs.accounts }}
# Has service accounts name their pull Secrets.
- apiGroups: [""]
  resources: [serviceaccounts]
  verbs: [get, patch]
  {{- if not (has "*" .) }}
  resourceNames: {{ toJson . }}
  {{- end }}
{{- end }}
{{- include "syncer.rotationRules" $root }}
{{- end -}}

{{/*
The rules for confirmations and migrations of key sets, in each served
namespace, because the workloads may be in any of them. The context is $.
*/}}
{{- define "syncer.rotationRules" -}}
{{- $workloads := list -}}
{{- $cronJobs := list -}}
{{- range $set := (.Values.config.rotation | default dict).sets -}}
{{- $confirm := $set.confirm | default dict -}}
{{- range $text := concat (kindIs "string" $confirm.ask | ternary (list $confirm.ask) $confirm.ask | default list) (kindIs "string" $confirm.restarted | ternary (list $confirm.restarted) $confirm.restarted | default list) -}}
{{- if not (contains "://" $text) }}{{ $workloads = append $workloads (splitList ":" $text | first | lower) }}{{ end -}}
{{- end -}}
{{- with $set.migrate }}{{ $cronJobs = append $cronJobs (trimPrefix "cronjob/" .) }}{{ end -}}
{{- end -}}
{{- if $workloads }}
# Asks Pods which keys they have, or sees that they were restarted.
- apiGroups: [""]
  resources: [pods]
  verbs: [list]
{{- range $kind := list "deployment" "statefulset" "daemonset" }}
{{- $names := list }}
{{- range $workloads }}
{{- if hasPrefix (print $kind "/") . }}{{ $names = append $names (trimPrefix (print $kind "/") .) }}{{ end }}
{{- end }}
{{- with $names }}
- apiGroups: [apps]
  resources: [{{ $kind }}s]
  verbs: [get]
  resourceNames: {{ . | uniq | sortAlpha | toJson }}
{{- end }}
{{- end }}
{{- end }}
{{- with $cronJobs }}
# Makes migration Jobs from CronJobs.
- apiGroups: [batch]
  resources: [cronjobs]
  verbs: [get]
  resourceNames: {{ . | uniq | sortAlpha | toJson }}
- apiGroups: [batch]
  resources: [jobs]
  verbs: [create, get]
{{- end }}
{{- end -}}
