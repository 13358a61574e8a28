{{/*
A value as a CEL literal. CEL lists and maps hold values of one type, which is
dyn here. A JSON string is a CEL string with the same meaning.
*/}}
{{- define "syncer.cel" -}}
{{- if kindIs "map" . -}}
{ {{- range $i, $key := keys . | sortAlpha }}{{ if $i }}, {{ end }}{{ toJson $key }}: dyn({{ include "syncer.cel" (get $ $key) }}){{ end -}} }
{{- else if kindIs "slice" . -}}
[{{- range $i, $item := . }}{{ if $i }}, {{ end }}dyn({{ include "syncer.cel" $item }}){{ end -}}]
{{- else -}}
{{ toJson . }}
{{- end -}}
{{- end -}}

{{/* The scope of the templates of _sidecar.tpl with another mode: (list $ "init"). */}}
{{- define "syncer.sidecarIn" -}}
{{- $ := index . 0 -}}
{{- $values := mergeOverwrite (deepCopy $.Values) (dict "sidecar" (dict "mode" (index . 1) "restartInPlace" (and (eq (index . 1) "sidecar") $.Values.sidecar.restartInPlace))) -}}
{{- include "syncer.sidecar" (dict "Values" $values "Chart" $.Chart "Release" $.Release) -}}
{{- end -}}

{{/* The Pods of a binding: (list $ "Pod"), or "Namespace" for those that lack the label. */}}
{{- define "syncer.injected" -}}
{{- $label := (index . 0).Values.inject.label -}}
{{ eq (index . 1) "Pod" | ternary "objectSelector" "namespaceSelector" }}:
  matchExpressions:
    - {key: {{ quote $label }}, operator: Exists}
    - {key: {{ quote $label }}, operator: NotIn, values: ["false"]}
{{- if eq (index . 1) "Namespace" }}
objectSelector:
  matchExpressions:
    - {key: {{ quote $label }}, operator: DoesNotExist}
{{- end }}
{{- end -}}

{{/*
The variables of both policies. Texts of users are only values of these
expressions, never a part of them.
*/}}
{{- define "syncer.injectVariables" -}}
{{- $label := .Values.inject.label -}}
{{- $mounts := include "syncer.sidecarMounts" . | fromYamlArray -}}
{{- $volumes := list -}}
{{- range include "syncer.sidecarVolumes" . | fromYamlArray }}{{ $volumes = append $volumes .name }}{{ end -}}
{{- $guarded := $volumes -}}
{{- range $mounts }}{{ if not .readOnly }}{{ $guarded = without $guarded .name }}{{ end }}{{ end -}}
- name: annotations
  expression: object.metadata.?annotations.orValue({})
- name: label
  {{- if .Values.inject.namespaces }}
  expression: >-
    object.metadata.?labels[?{{ toJson $label }}].orValue(
    namespaceObject.metadata.?labels[?{{ toJson $label }}].orValue(""))
  {{- else }}
  expression: object.metadata.?labels[?{{ toJson $label }}].orValue("")
  {{- end }}
- name: ownMode # an empty annotation counts as not set
  expression: variables.annotations[?"conjur.org/container-mode"].orValue("")
- name: mode
  expression: >-
    variables.label == "init" ? "init" :
    variables.ownMode == "" ? {{ toJson .Values.sidecar.mode }} : variables.ownMode
- name: ownFolder
  expression: variables.annotations[?"conjur.org/inject-folder"].orValue("")
- name: rightFolder
  expression: >-
    variables.ownFolder == "" || variables.ownFolder.matches("^(/[A-Za-z0-9._-]+)+$") && variables.ownFolder.size() <= 256 &&
    !variables.ownFolder.split("/").exists(name, name in [".", ".."]) &&
    !variables.ownFolder.matches("^/(bin|boot|dev|lib|lib32|lib64|libx32|proc|root|sbin|sys|usr)(/|$)|^/(etc|home|media|mnt|opt|run|srv|tmp|var)$|^/etc/(alternatives|ca-certificates|group|hostname|hosts|kubernetes|ld[.]so[.][a-z.]+|nsswitch[.]conf|pam[.]d|passwd|pki|resolv[.]conf|security|shadow|ssl)(/|$)|^/var/(cache|lib|local|lock|log|opt|run|spool|tmp)$|^(/var)?/run/(lock|secrets)(/|$)")
    {{- range slice $mounts 1 }} &&
    !(variables.ownFolder + "/").startsWith({{ printf "%s/" .mountPath | toJson }}) &&
    !{{ printf "%s/" .mountPath | toJson }}.startsWith(variables.ownFolder + "/")
    {{- end }}
- name: folder # fit for a message
  expression: >-
    variables.ownFolder == "" || !variables.rightFolder ? {{ toJson (index $mounts 0).mountPath }} : variables.ownFolder
- name: inits
  expression: object.spec.?initContainers.orValue([])
- name: containers
  expression: "dyn(object.spec.containers) == null ? [] : object.spec.containers"
- name: initNames
  expression: variables.inits.map(c, string(c.name))
- name: containerNames
  expression: variables.containers.map(c, string(c.name))
- name: list
  expression: variables.annotations[?"conjur.org/inject-containers"].orValue("")
- name: listed # a long list would take the API server seconds
  expression: >-
    (variables.list.size() > 16384 ? "" : variables.list).split(",").map(name, name.trim()).filter(name, name != "")
- name: chosen # the names of the containers that get the secrets
  expression: "variables.listed.size() > 0 ? variables.listed : variables.containerNames"
- name: envLists # of each group with variables
  expression: >-
    variables.annotations.filter(key, key.startsWith("conjur.org/inject-env.")).map(key, key.substring(22)).sort().map(group, {"group": group,
    "path": string(variables.annotations[?("conjur.org/secret-file-path." + group)].orValue("")),
    "names": string(variables.annotations["conjur.org/inject-env." + group])})
- name: env # the variables of the containers that get the secrets
  expression: >-
    variables.envLists.map(l, (l.names.size() > 16384 ? "" : l.names).split(",").map(name, name.trim()).filter(name, name != "").map(name,
    {"group": l.group, "name": name, "path": l.path == "" || l.path.endsWith("/") ? l.path + l.group + ".kubernetes-env" : l.path})).flatten()
- name: envNames
  expression: variables.env.map(v, v.name).sort()
- name: repeated # found in one pass
  expression: variables.envNames.transformList(i, name, i > 0 && variables.envNames[i - 1] == name, name)
- name: envMistakes # by the words of a message, the groups
  expression: >-
    [["set conjur.org/conjur-secrets, and conjur.org/secret-file-format to kubernetes-env, for the variables of ",
    variables.envLists.filter(l, !(("conjur.org/conjur-secrets." + l.group) in variables.annotations) ||
    variables.annotations[?("conjur.org/secret-file-format." + l.group)].orValue("") != "kubernetes-env").map(l, l.group).join(", ")],
    ["set conjur.org/secret-file-path to a relative path without .. for the variables of ",
    variables.envLists.filter(l, l.path.startsWith("/") || ".." in l.path.split("/")).map(l, l.group).join(", ")],
    ["list names of environment variables, separated by commas, each once, in conjur.org/inject-env of ",
    variables.envLists.filter(l, !variables.env.exists(v, v.group == l.group) || variables.env.exists(v, v.group == l.group &&
    (!v.name.matches("^[-._a-zA-Z][-._a-zA-Z0-9]*$") || v.name in variables.repeated))).map(l, l.group).join(", ")]]
    .filter(m, m[1] != "").map(m, m[0] + m[1])
- name: writers # could write to a volume that is Syncer's alone
  expression: >-
    (variables.inits + variables.containers + object.spec.?ephemeralContainers.orValue([]).map(c, dyn(c))).filter(c, c.name != "syncer" &&
    c.?volumeMounts.orValue([]).exists(m, m.name in {{ toJson $guarded }} && !m.?readOnly.orValue(false)))
    .map(c, string(c.name))
- name: readOnly
  expression: >-
    variables.writers.size() == 0 ? [] : ["set readOnly: true for the mounts of Syncer's volumes in " +
    (variables.writers.size() > 9 ? [variables.writers[0], string(variables.writers.size() - 1) + " other containers"] : variables.writers).join(", ")]
- name: mistakes
  expression: >-
    (variables.label in ["true", "init"] ? [] :
    [{{ printf "set the label %s to \"true\", \"init\" or \"false\"" $label | toJson }}]) +
    (variables.ownMode in ["", "sidecar", "init"] ? [] :
    ["set the annotation conjur.org/container-mode to sidecar or init"]) +
    (variables.label == "init" && variables.ownMode == "sidecar" ?
    [{{ printf "the label %s is \"init\", but the annotation conjur.org/container-mode is sidecar: remove one of them" $label | toJson }}] : []) +
    (variables.rightFolder ? [] :
    ["set the annotation conjur.org/inject-folder to an absolute path without . and .., such as /conjur/secrets, not a folder of the system, outside
    {{- range slice $mounts 1 }} {{ .mountPath }}{{ end }}"]) +
    (variables.annotations.exists(key, key.startsWith("conjur.org/inject-") &&
    !(key in ["conjur.org/inject-containers", "conjur.org/inject-folder"]) && !key.startsWith("conjur.org/inject-env.")) ?
    ["of the annotations that begin with conjur.org/inject-, only conjur.org/inject-containers, conjur.org/inject-folder and conjur.org/inject-env.GROUP exist: remove the others"] : []) +
    variables.envMistakes +
    (variables.list != "" && variables.listed.size() == 0 ||
    variables.listed.exists(name, !(name in variables.initNames || name in variables.containerNames)) ?
    ["the annotation conjur.org/inject-containers lists a container that the Pod does not have: list names of its containers, separated by commas"] : []) +
    (object.spec.?securityContext.?runAsUser.orValue(1) == 0 ?
    ["the Pod's securityContext.runAsUser is 0, and Syncer does not run as root: set it at the containers that need it"] : []) +
    (object.spec.?os.?name.orValue("") == "windows" || object.spec.?nodeSelector[?"kubernetes.io/os"].orValue("") == "windows" ?
    ["the Pod is for Windows, and Syncer for Linux: remove the label"] : [])
- name: occupied # the chosen containers that mount something at or below a folder of the secrets
  expression: >-
    (variables.inits + variables.containers).filter(c, c.name in variables.chosen &&
    c.?volumeMounts.orValue([]).exists(m,
    [variables.folder{{ range slice $mounts 1 }}, {{ toJson .mountPath }}{{ end }}].exists(folder,
    ("/" + m.mountPath.split("/").filter(s, !(s in ["", "."])).join("/") + "/").startsWith(folder + "/"))))
    .map(c, string(c.name))
- name: doubled # the chosen containers that set a variable themselves
  expression: >-
    (variables.inits + variables.containers).filter(c, c.name in variables.chosen &&
    c.?env.orValue([]).exists(e, e.name in variables.envNames)).map(c, string(c.name))
- name: parts # what would exist twice
  expression: >-
    (variables.inits + variables.containers).filter(c, c.name == "syncer")
    .map(c, "the Pod already has a container syncer: rename it") +
    object.spec.?volumes.orValue([]).filter(v, v.name in {{ toJson $volumes }})
    .map(v, "the Pod already has a volume " + v.name + ": rename it") +
    ((variables.inits + variables.containers).exists(c, c.name in variables.chosen &&
    c.?volumeMounts.orValue([]).exists(m, ".." in m.mountPath.split("/"))) ?
    ["write the mount paths of the containers that get the secrets without .."] : []) +
    (variables.occupied.size() == 0 ? [] :
    ["move the mounts in " + variables.folder +
    {{- range slice $mounts 1 }} {{ printf " or %s" .mountPath | toJson }} +{{ end }} " of " +
    (variables.occupied.size() > 9 ? [variables.occupied[0], string(variables.occupied.size() - 1) + " other containers"] : variables.occupied).join(", ")]) +
    (variables.doubled.size() == 0 ? [] :
    ["remove the variables of conjur.org/inject-env from env of " +
    (variables.doubled.size() > 9 ? [variables.doubled[0], string(variables.doubled.size() - 1) + " other containers"] : variables.doubled).join(", ")])
{{- end -}}

{{/* The change of a Pod, as the operations of a JSON patch. */}}
{{- define "syncer.injectPatch" -}}
{{- $mounts := include "syncer.sidecarMounts" . | fromYamlArray -}}
{{/* A patched Pod with writers gets the reason from the other policy, which only warns with
Ignore. Unpatched, it lacks the volume, so the API server rejects it. */ -}}
variables.mistakes.size() + variables.parts.size() {{ if ne .Values.inject.failurePolicy "Fail" }}+ variables.writers.size() {{ end }}> 0 || variables.chosen.size() == 0 ? [] :
{{- range $list := list "initContainers" "containers" }}
{{- $of := eq $list "containers" | ternary "variables.containers" "variables.inits" }}
{{- $names := eq $list "containers" | ternary "variables.containerNames" "variables.initNames" }}
{{ $of }}.filter(c, c.name in variables.chosen && !has(c.volumeMounts)).map(c,
JSONPatch{op: "add", path: "/spec/{{ $list }}/" + string({{ $names }}.indexOf(c.name)) + "/volumeMounts", value: []}) +
{{- range $i, $mount := $mounts }}
{{ $of }}.filter(c, c.name in variables.chosen).map(c,
JSONPatch{op: "add", path: "/spec/{{ $list }}/" + string({{ $names }}.indexOf(c.name)) + "/volumeMounts/-", value: {{ include "syncer.cel" $mount | replace (printf "dyn(%s)" (toJson (index $mounts 0).mountPath)) "dyn(variables.folder)" }}}) +
{{- end }}
{{/* First, so that the container's own variables can refer to them as $(NAME). */ -}}
{{ $of }}.filter(c, c.name in variables.chosen && !has(c.env) && variables.env.size() > 0).map(c,
JSONPatch{op: "add", path: "/spec/{{ $list }}/" + string({{ $names }}.indexOf(c.name)) + "/env", value: []}) +
{{ $of }}.filter(c, c.name in variables.chosen).map(c, variables.env.transformList(i, v,
JSONPatch{op: "add", path: "/spec/{{ $list }}/" + string({{ $names }}.indexOf(c.name)) + "/env/" + string(i), value: {"name": dyn(v.name), "valueFrom": dyn({"fileKeyRef": dyn({
"volumeName": dyn({{ toJson (index $mounts 0).name }}), "path": dyn(v.path), "key": dyn(v.name)})})}})).flatten() +
{{- end }}
(has(object.spec.volumes) ? [] : [JSONPatch{op: "add", path: "/spec/volumes", value: []}]) +
[
{{- range include "syncer.sidecarVolumes" . | fromYamlArray }}
JSONPatch{op: "add", path: "/spec/volumes/-", value: {{ include "syncer.cel" . }}},
{{- end }}
] +
(has(object.spec.initContainers) ? [] : [JSONPatch{op: "add", path: "/spec/initContainers", value: []}]) +
[JSONPatch{op: "add", path: "/spec/initContainers/0", value: variables.mode == "init" ?
{{ include "syncer.sidecarIn" (list . "init") | fromYamlArray | first | include "syncer.cel" }} :
{{ include "syncer.sidecarIn" (list . "sidecar") | fromYamlArray | first | include "syncer.cel" }}}] +
(variables.mode == "init" || variables.annotations[?"conjur.org/restart-app-in-place"].orValue("") != "true" ? [] :
[JSONPatch{op: "add", path: "/spec/initContainers/0/restartPolicyRules", value: [{"action": dyn("RestartAllContainers"), "exitCodes": dyn({"operator": dyn("In"), "values": dyn([85])})}]}])
{{- end -}}
