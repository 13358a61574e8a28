{{/*
Syncer beside an application. A chart that depends on this one, with the shape
none, takes the templates over its scope:

  initContainers:
    {{- include "syncer.sidecar" .Subcharts.syncer | nindent 4 }}
  containers:
    - name: app
      volumeMounts:
        {{- include "syncer.sidecarMounts" .Subcharts.syncer | nindent 8 }}
  volumes:
    {{- include "syncer.sidecarVolumes" .Subcharts.syncer | nindent 4 }}

The conjur.org/ annotations of the Pod select the secrets.
*/}}

{{/*
The container, an item of initContainers. The application starts when the
secrets were provided, and the sidecar keeps running.
*/}}
{{- define "syncer.sidecar" -}}
{{- if .Values.sidecar.restartInPlace -}}
{{- if ne .Values.sidecar.mode "sidecar" -}}
{{- fail "sidecar.restartInPlace: an init container ends before the application starts, and cannot restart it; set sidecar.mode to sidecar" -}}
{{- end -}}
{{- with .Capabilities -}}
{{- if lt (int (trimSuffix "+" .KubeVersion.Minor)) 36 -}}
{{- fail (printf "sidecar.restartInPlace: Kubernetes restarts all containers of a Pod in place since 1.36, and this is %s; set it to false" .KubeVersion.Version) -}}
{{- end -}}
{{- end -}}
{{- end -}}
- name: syncer
  image: {{ include "syncer.image" . | quote }}
  imagePullPolicy: {{ .Values.image.pullPolicy }}
  terminationMessagePolicy: FallbackToLogsOnError
  {{- if eq .Values.sidecar.mode "sidecar" }}
  restartPolicy: Always
  {{- if .Values.sidecar.restartInPlace }}
  restartPolicyRules:
    - action: RestartAllContainers
      exitCodes:
        operator: In
        values: [85]
  {{- end }}
  {{- if eq .Values.sidecar.startup "hook" }}
  lifecycle:
    postStart:
      exec:
        command: [/syncer, wait, --timeout, 20s] # while it runs the Pod cannot be deleted
  {{- else }}
  startupProbe:
    exec:
      command: [/syncer, probe, provided]
    periodSeconds: 1
    failureThreshold: 300
  {{- end }}
  livenessProbe:
    exec:
      command: [/syncer, probe, alive]
    periodSeconds: 30
    timeoutSeconds: 5
  {{- end }}
  {{- with .Values.extraArgs }}
  args:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- include "syncer.sidecarEnvironment" . | nindent 2 }}
  resources:
    {{- toYaml .Values.sidecar.resources | nindent 4 }}
  securityContext:
    {{- include "syncer.containerSecurity" . | nindent 4 }}
  volumeMounts:
    - name: podinfo
      mountPath: /conjur/podinfo
      readOnly: true
    - name: conjur-secrets
      mountPath: /conjur/secrets
    - name: conjur-status
      mountPath: /conjur/status
    {{- if .Values.sidecar.templatesConfigMap }}
    - name: conjur-templates
      mountPath: /conjur/templates
      readOnly: true
    {{- end }}
    {{- include "syncer.credentialMounts" . | trim | nindent 4 }}
{{- end -}}

{{/*
The connection to Conjur and the usual refresh, as variables. Annotations contain all
other settings.
*/}}
{{- define "syncer.sidecarEnvironment" -}}
{{- $conjur := .Values.config.conjur | default dict -}}
{{- if and (not .Values.credentials.connectConfigMap) (or (not $conjur.applianceUrl) (not $conjur.account)) -}}
{{- fail "config.conjur: applianceUrl and account are not set; give them, or a ConfigMap with them as credentials.connectConfigMap" -}}
{{- end -}}
env:
{{- include "syncer.memoryBound" .Values.sidecar.resources | nindent 2 }}
{{- include "syncer.podEnvironment" . | nindent 2 }}
  - name: CONTAINER_MODE
    value: {{ .Values.sidecar.mode }}
{{- if eq .Values.sidecar.mode "sidecar" }}
{{- $refresh := .Values.config.refresh | default dict }}
{{- if ne (toString $refresh.enabled) "false" }}
  - name: SECRETS_REFRESH_INTERVAL # annotations of the Pod override it
    value: {{ $refresh.interval | default "5m" | quote }}
{{- end }}
{{- if .Values.sidecar.restartInPlace }}
  - name: RESTART_APP_IN_PLACE
    value: "true"
{{- end }}
{{- end }}
{{- with $conjur.applianceUrl }}
  - name: CONJUR_APPLIANCE_URL
    value: {{ quote . }}
{{- end }}
{{- with $conjur.account }}
  - name: CONJUR_ACCOUNT
    value: {{ quote . }}
{{- end }}
{{- with $conjur.authnUrl }}
  - name: CONJUR_AUTHN_URL
    value: {{ quote . }}
{{- end }}
{{- with $conjur.login }}
  - name: CONJUR_AUTHN_LOGIN
    value: {{ quote . }}
{{- end }}
{{- if .Values.credentials.apiKey.secretName }}
  - name: CONJUR_AUTHN_API_KEY_FILE
    value: /etc/syncer/conjur/api-key
{{- else }}
  - name: JWT_TOKEN_PATH
    value: /var/run/secrets/conjur/token
{{- end }}
{{- if or .Values.credentials.certificate.configMapName .Values.credentials.certificate.secretName }}
  - name: CONJUR_CERT_FILE
    value: /etc/syncer/certificate/ca.crt
{{- end }}
{{- with include "syncer.environmentFrom" . }}
{{ . }}
{{- end }}
{{- end -}}

{{/* The application's mounts: the files, and the status for its probes. */}}
{{- define "syncer.sidecarMounts" -}}
- name: conjur-secrets
  mountPath: /conjur/secrets
  readOnly: true
- name: conjur-status
  mountPath: /conjur/status
{{- end -}}

{{/*
The Pod's volumes. No secret file is written to a disk. The status folder
contains no secret. In memory it would be sticky, so an application with another
user than Syncer's could not delete its files.
*/}}
{{- define "syncer.sidecarVolumes" -}}
- name: podinfo
  downwardAPI:
    items:
      - path: annotations
        fieldRef:
          fieldPath: metadata.annotations
- name: conjur-secrets
  emptyDir:
    medium: Memory
    {{- with dig "limits" "memory" "" .Values.sidecar.resources }}
    sizeLimit: {{ . | quote }} # files count as the container's memory
    {{- end }}
- name: conjur-status
  emptyDir: {}
{{- with .Values.sidecar.templatesConfigMap }}
- name: conjur-templates
  configMap:
    name: {{ quote . }}
{{- end }}
{{ include "syncer.credentialVolumes" . | trim }}
{{- end -}}
