package tool

import (
	"fmt"
	"path"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/pkg/tool/secretsprovider"
)

// checkRestartRule checks that the Pod can restart in place, if the settings ask for that.
func checkRestartRule(p secretsprovider.Provider) (v config.Validation) {
	spec := &p.Pod.Spec
	all := slices.Concat(spec.InitContainers, spec.Containers)
	at := slices.IndexFunc(all, func(c corev1.Container) bool { return c.Name == p.Container.Name })
	if at < 0 || p.Config == nil || !p.Config.InPlace.Enabled {
		return v
	}
	key := "container " + p.Container.Name
	if !slices.ContainsFunc(all[at].RestartPolicyRules, restartsAll) {
		v.Errors = append(v.Errors, config.Problem{Key: key, Message: fmt.Sprintf(
			"restart-app-in-place restarts only Syncer without a rule; add restartPolicyRules: [{action: RestartAllContainers, exitCodes: {operator: In, values: [%d]}}], for Kubernetes 1.36", config.InPlaceStatus)})
	}
	if all[at].RestartPolicy == nil {
		v.Errors = append(v.Errors, config.Problem{Key: key, Message: "Kubernetes accepts restartPolicyRules only beside the restartPolicy of the container; add restartPolicy: Always"})
	}
	if p.Container.MountOf(path.Clean(p.Config.Folders.Status)) == "" {
		v.Errors = append(v.Errors, config.Problem{Key: key, Message: fmt.Sprintf(
			"restart-app-in-place keeps its state in the status folder, which is not in a volume; mount an emptyDir at %s", p.Config.Folders.Status)})
	}
	if !p.Config.Refresh.Enabled {
		v.Warnings = append(v.Warnings, config.Problem{Key: key, Message: "restart-app-in-place has no effect without refresh; set secrets-refresh-interval"})
	}
	return v
}

// restartsAll reports whether a rule restarts all containers after Syncer's exit status.
func restartsAll(rule corev1.ContainerRestartRule) bool {
	if rule.Action != corev1.ContainerRestartRuleActionRestartAllContainers || rule.ExitCodes == nil {
		return false
	}
	listed := slices.Contains(rule.ExitCodes.Values, config.InPlaceStatus)
	return listed == (rule.ExitCodes.Operator == corev1.ContainerRestartRuleOnExitCodesOpIn)
}
