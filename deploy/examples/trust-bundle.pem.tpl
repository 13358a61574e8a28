{{- /* All certificates of a set of authorities: while one is exchanged, both are
       trusted. */ -}}
{{ range versions "ca" }}{{ .Part "crt" }}{{ end -}}
