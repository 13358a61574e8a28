{{/*
The name of the objects in the release's namespace: the release name itself,
which is unique there.
*/}}
{{- define "syncer.fullname" -}}
{{- default .Release.Name .Values.fullnameOverride -}}
{{- end -}}

{{/*
The name of objects outside the release's namespace. A namespace contains no
dot, so the last dot separates the two parts, and each release of a cluster has
another name.
*/}}
{{- define "syncer.clusterName" -}}
{{- printf "%s.%s" (include "syncer.fullname" .) .Release.Namespace -}}
{{- end -}}

{{- define "syncer.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "syncer.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "syncer.selectorLabels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ include "syncer.fullname" . }}
{{- end -}}

{{- define "syncer.labels" -}}
{{ include "syncer.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name (.Chart.Version | replace "+" "_") }}
{{- end -}}

{{- define "syncer.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}
{{- end -}}
{{- end -}}
{{- end -}}
