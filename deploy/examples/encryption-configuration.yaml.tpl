{{- /* The API server's --encryption-provider-config, of a key set with 32 random
       bytes as its part "key": the primary encrypts, all decrypt. Set the API
       server's --encryption-provider-config-automatic-reload. */ -}}
apiVersion: apiserver.config.k8s.io/v1
kind: EncryptionConfiguration
resources:
- resources: [secrets]
  providers:
  - secretbox:
      keys:
      {{- range versions "keys" }}{{ if .Primary }}
      - name: {{ .ID | quote }}
        secret: {{ .Part "key" | b64enc }}
      {{- end }}{{ end }}
      {{- range versions "keys" }}{{ if not .Primary }}
      - name: {{ .ID | quote }}
        secret: {{ .Part "key" | b64enc }}
      {{- end }}{{ end }}
  - identity: {}
