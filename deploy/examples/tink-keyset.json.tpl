{{- /* A cleartext keyset of Tink for AES-256-GCM, of a key set with 32 random
       bytes as its part "key". A key's number is the checksum of its id. The two
       bytes before each key are its field and length in Tink's AesGcmKey. */ -}}
{"primaryKeyId":{{ range versions "keys" }}{{ if .Primary }}{{ adler32sum .ID }}{{ end }}{{ end }},"key":[
{{- range $i, $v := versions "keys" }}{{ if $i }},{{ end }}
{"keyId":{{ adler32sum $v.ID }},"status":"ENABLED","outputPrefixType":"TINK","keyData":{
"typeUrl":"type.googleapis.com/google.crypto.tink.AesGcmKey","keyMaterialType":"SYMMETRIC",
"value":"{{ printf "\x1a\x20%s" ($v.Part "key") | b64enc }}"}}
{{- end }}]}
