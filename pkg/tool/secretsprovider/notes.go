package secretsprovider

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/secretsync/syncer/config"
)

// notes are the remarks on one workload.
type notes struct {
	Provider
	list []config.Problem
}

// Notes returns the differences for the workload once Syncer runs in it, and the manual
// work for the login.
func (p Provider) Notes() (list, must []config.Problem) {
	n := &notes{Provider: p}
	n.onRefresh()
	n.onSettings()
	n.onDestination()
	n.onGroups()
	if p.Config != nil && !p.Unknown(AuthnURL) {
		must = n.onLogin(p.Config.Conjur)
	}
	return n.list, must
}

func (n *notes) add(key, format string, args ...any) {
	n.list = append(n.list, config.Problem{Key: key, Message: fmt.Sprintf(format, args...)})
}

// setting returns the value of the annotation or, without it, of the variable. key is the
// one that has the value.
func (n *notes) setting(annotation, variable string) (value, key string) {
	key = "conjur.org/" + annotation
	if value, ok := n.Workload.Annotations[key]; ok {
		return value, key
	}
	if v, ok := n.Container.Env[variable]; ok && v.Value != "" {
		return v.Value, variable
	}
	return "", key
}

// refreshes reports whether the workload's secrets are refreshed.
func (n *notes) refreshes() bool {
	interval, _ := n.setting("secrets-refresh-interval", "")
	enabled, _ := n.setting("secrets-refresh-enabled", "")
	on, _ := strconv.ParseBool(enabled)
	return on || interval != ""
}

func (n *notes) onRefresh() {
	value, key := n.setting("secrets-refresh-enabled", "")
	on, err := strconv.ParseBool(value)
	mode, _ := n.setting("container-mode", "CONTAINER_MODE")
	switch {
	case err == nil && on && value != "true":
		n.add(key, "%q switches the refresh on; only the text true did so before", value)
	case err == nil && !on && mode != string(config.ModeSidecar) && mode != string(config.ModeStandalone):
		n.add(key, "%q is valid in every mode; it was an error outside the modes sidecar and standalone", value)
	}
	if n.refreshes() {
		n.add("conjur.org/secrets-refresh-interval", "an unchanged refresh is one conditional request without a value in its answer; delivered files and Secrets stay as they are, also after a restart")
	}
}

func (n *notes) onSettings() {
	if value, key := n.setting("retry-interval-sec", "RETRY_INTERVAL_SEC"); value == "0" {
		n.add(key, "retries begin at once and come ever slower; 0 switched them off before")
	}
	if value, key := n.setting("retry-count-limit", "RETRY_COUNT_LIMIT"); n.stays() && value != "" {
		n.add(key, "a long-running process keeps trying, whatever the limit, and delivered values stay; before, it ended after the last retry")
	}
	value, key := n.setting("remove-deleted-secrets-enabled", "REMOVE_DELETED_SECRETS")
	if on, err := strconv.ParseBool(value); (on || err != nil) && !n.fillsSecrets() {
		n.add(key, "one variable that is gone takes away only the files that hold it, and only when Conjur has confirmed it twice")
	} else if on || err != nil {
		n.add(key, "one variable that is gone takes away only the data keys that hold it, and only when Conjur has confirmed it twice; all keys of all Secrets became empty before")
	}
	if _, set := n.Container.Env["MY_POD_NAMESPACE"]; set && !n.fillsSecrets() && !n.mayUseK8s() {
		n.add("MY_POD_NAMESPACE", "no longer needed for files; it may be removed")
	}
	for _, name := range []string{"CONJUR_SSL_CERTIFICATE", "CONJUR_CERT_FILE"} {
		if _, set := n.Container.Env[name]; set {
			n.add(name, "optional where Conjur's certificate is signed by an authority that the system trusts")
		}
	}
}

// mayUseK8s reports whether the workload logs in by authn-k8s, which needs the Pod's name
// and namespace. An unknown authenticator counts.
func (n *notes) mayUseK8s() bool {
	return n.Unknown(AuthnURL) || strings.Contains(n.Container.Env[AuthnURL].Value, string(config.AuthnK8s))
}

// onGroups notes differences in each group's format.
func (n *notes) onGroups() {
	for _, key := range slices.Sorted(maps.Keys(n.Workload.Annotations)) {
		group, ok := strings.CutPrefix(key, "conjur.org/secret-file-format.")
		if !ok {
			continue
		}
		switch format := n.Workload.Annotations[key]; {
		case format == "template" && n.Workload.Annotations["conjur.org/secret-file-template."+group] == "" && n.refreshes():
			n.add(key, "a changed template is rendered within a second, without a restart")
		case format == "bash" || format == "dotenv" || format == "json":
			n.add(key, "values with special characters are written so that they survive being read; plain ones look as before")
		}
	}
}

// Unrunnable returns the problems with commands of the container, by their fields, that
// this image of Syncer cannot run. An image with shell in its name or tag has a shell.
func (p Provider) Unrunnable(image string) (problems []config.Problem) {
	c := p.Container
	if strings.Contains(path.Base(image), "shell") {
		return nil
	}
	commands := maps.Clone(c.Execs)
	commands["command"] = c.Command
	for _, field := range slices.Sorted(maps.Keys(commands)) {
		command := commands[field]
		if len(command) == 0 || inImage(command[0]) {
			continue
		}
		instead := "write [/syncer, probe, provided]"
		switch {
		case field == "command":
			instead = "remove it, so that the image's command runs"
		case field == "lifecycle.postStart":
			instead = "write [/syncer, wait]"
		case strings.Contains(strings.Join(command, " "), "conjur-secrets-unchanged"):
			instead = "write [/syncer, probe, unchanged]"
		case field == "livenessProbe":
			instead = "write [/syncer, probe, alive]"
		}
		problems = append(problems, config.Problem{Key: field, Message: fmt.Sprintf(
			"the container %s cannot run %.200q in Syncer's image without a shell; %s, or use an image with a shell, and with shell in its name or tag", c.Name, command[0], instead)})
	}
	return problems
}

// inImage reports whether Syncer's image without a shell can run a program. The scripts in
// the status folder need a shell.
func inImage(program string) bool {
	switch folder, name := path.Split(program); name {
	case "syncer", "secrets-provider":
		return true
	case "conjur-secrets-provided.sh", "conjur-secrets-unchanged.sh":
		return folder == "" || folder == "/usr/local/bin/"
	}
	return false
}
