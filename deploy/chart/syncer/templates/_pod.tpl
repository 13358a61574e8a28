{{/*
The requirements of restricted Pod Security for a container, and a read-only
root file system.
*/}}
{{- define "syncer.containerSecurity" -}}
allowPrivilegeEscalation: false
capabilities:
  drop: [ALL]
privileged: false
readOnlyRootFilesystem: true
runAsNonRoot: true
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{/*
"true" if Conjur may write a certificate: with authn-k8s, and if only the
ConfigMap contains the address of the authenticator.
*/}}
{{- define "syncer.takesCertificate" -}}
{{- $conjur := default dict .Values.config.conjur -}}
{{- if or (contains "/authn-k8s/" (default "" $conjur.authnUrl)) (and .Values.credentials.connectConfigMap (not $conjur.authnUrl)) }}true{{ end -}}
{{- end -}}

{{/* The credentials of Syncer, and the CA certificates that it trusts. */}}
{{- define "syncer.credentialVolumes" -}}
{{- with .Values.credentials -}}
{{- if .apiKey.secretName }}
- name: conjur-api-key
  secret:
    secretName: {{ quote .apiKey.secretName }}
    items:
      - key: {{ quote .apiKey.key }}
        path: api-key
{{- else }}
- name: conjur-token
  projected:
    sources:
      - serviceAccountToken:
          audience: {{ quote .token.audience }}
          expirationSeconds: {{ int .token.expirationSeconds }}
          path: token
{{- end }}
{{- if .certificate.configMapName }}
- name: conjur-certificate
  configMap:
    name: {{ quote .certificate.configMapName }}
    items:
      - key: {{ quote .certificate.key }}
        path: ca.crt
{{- else if .certificate.secretName }}
- name: conjur-certificate
  secret:
    secretName: {{ quote .certificate.secretName }}
    items:
      - key: {{ quote .certificate.key }}
        path: ca.crt
{{- end }}
{{- end }}
{{- if include "syncer.takesCertificate" . }}
- name: conjur-ssl
  emptyDir:
    medium: Memory
    sizeLimit: 1Mi
{{- end }}
{{- end -}}

{{- define "syncer.credentialMounts" -}}
{{- with .Values.credentials -}}
{{- if .apiKey.secretName }}
- name: conjur-api-key
  mountPath: /etc/syncer/conjur
  readOnly: true
{{- else }}
- name: conjur-token
  mountPath: /var/run/secrets/conjur
  readOnly: true
{{- end }}
{{- if or .certificate.configMapName .certificate.secretName }}
- name: conjur-certificate
  mountPath: /etc/syncer/certificate
  readOnly: true
{{- end }}
{{- end }}
{{- if include "syncer.takesCertificate" . }}
- name: conjur-ssl
  mountPath: /etc/conjur/ssl
{{- end }}
{{- end -}}

{{/* The Pod of the Deployment and of the Job. */}}
{{- define "syncer.podTemplate" -}}
metadata:
  {{- with .Values.podAnnotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  labels:
    {{- /* In a namespace with the label, Syncer gets no second Syncer. */}}
    {{- $inject := .Values.inject.enabled | ternary (dict .Values.inject.label "false") dict }}
    {{- merge (include "syncer.selectorLabels" . | fromYaml) .Values.podLabels $inject | toYaml | nindent 4 }}
spec:
  serviceAccountName: {{ include "syncer.serviceAccountName" . }}
  automountServiceAccountToken: true
  {{- with .Values.image.pullSecrets }}
  imagePullSecrets:
    {{- range . }}
    - name: {{ . }}
    {{- end }}
  {{- end }}
  {{- with .Values.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  securityContext:
    {{- merge (deepCopy .Values.podSecurityContext) (dict "runAsNonRoot" true "seccompProfile" (dict "type" "RuntimeDefault")) | toYaml | nindent 4 }}
  {{- if eq .Values.shape "job" }}
  restartPolicy: Never
  {{- end }}
  terminationGracePeriodSeconds: {{ int .Values.terminationGracePeriodSeconds }}
  containers:
    - name: syncer
      image: {{ include "syncer.image" . | quote }}
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      terminationMessagePolicy: FallbackToLogsOnError
      args:
        - --config=/etc/syncer/config/syncer.yaml
        {{- with .Values.extraArgs }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      env:
        {{- include "syncer.memoryBound" .Values.resources | nindent 8 }}
        {{- include "syncer.podEnvironment" . | nindent 8 }}
      {{- with include "syncer.environmentFrom" . }}
        {{- nindent 6 . }}
      {{- end }}
      {{- if eq .Values.shape "deployment" }}
      ports:
        - name: http
          containerPort: {{ int .Values.port }}
      livenessProbe:
        httpGet:
          path: /healthz
          port: http
        periodSeconds: 10
        timeoutSeconds: 5
      readinessProbe:
        httpGet:
          path: /readyz
          port: http
        periodSeconds: 5
        timeoutSeconds: 5
      {{- end }}
      resources:
        {{- toYaml .Values.resources | nindent 8 }}
      securityContext:
        {{- include "syncer.containerSecurity" . | nindent 8 }}
      volumeMounts:
        - name: config
          mountPath: /etc/syncer/config
          readOnly: true
        - name: status
          mountPath: /conjur/status
        {{- include "syncer.credentialMounts" . | trim | nindent 8 }}
        {{- with .Values.extraVolumeMounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
  volumes:
    - name: config
      configMap:
        name: {{ include "syncer.fullname" . }}
    - name: status
      emptyDir:
        sizeLimit: 1Mi
    {{- include "syncer.credentialVolumes" . | trim | nindent 4 }}
    {{- with .Values.extraVolumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with include "syncer.placement" . | trim }}
    {{- nindent 2 . }}
  {{- end }}
{{- end -}}

{{/*
Limits Go's memory to three quarters of the container's limit. Go does not count
the rest, such as files in volumes in memory, of which old and new copies exist
together.
*/}}
{{- define "syncer.memoryBound" -}}
{{- $limit := dig "limits" "memory" "" . | toString -}}
- name: GOMEMLIMIT
{{- if regexMatch "^[0-9]+Mi$" $limit }}
  value: {{ printf "%dKiB" (div (mul (trimSuffix "Mi" $limit) 1024 3) 4) }}
{{- else if regexMatch "^[0-9]+Gi$" $limit }}
  value: {{ printf "%dMiB" (div (mul (trimSuffix "Gi" $limit) 1024 3) 4) }}
{{- else }}
  valueFrom: # the limit as it is; without one, the memory of the node
    resourceFieldRef:
      resource: limits.memory
{{- end }}
{{- end -}}

{{- define "syncer.podEnvironment" -}}
- name: MY_POD_NAME
  valueFrom:
    fieldRef:
      fieldPath: metadata.name
- name: MY_POD_NAMESPACE
  valueFrom:
    fieldRef:
      fieldPath: metadata.namespace
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "syncer.environmentFrom" -}}
{{- with .Values.credentials.connectConfigMap -}}
envFrom:
  - configMapRef:
      name: {{ quote . }}
{{- end }}
{{- end -}}

{{- define "syncer.placement" -}}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- if .Values.topologySpreadConstraints }}
topologySpreadConstraints:
  {{- toYaml .Values.topologySpreadConstraints | nindent 2 }}
{{- else if and (eq .Values.shape "deployment") (gt (int .Values.replicas) 1) }}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "syncer.selectorLabels" . | nindent 8 }}
{{- end }}
{{- end -}}
