package tool

import (
	"fmt"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/tool/secretsprovider"
)

// volumeFile is a file in a volume of a Pod.
type volumeFile struct{ volume, path string }

// checkPod checks the parts of a Pod that must fit the settings of its provider.
func checkPod(p secretsprovider.Provider) (v config.Validation) {
	all, at := containersOf(p)
	if at < 0 || p.Config == nil {
		return v
	}
	return both(checkFileKeys(p, all, at), checkRestartRule(p, all[at]))
}

// containersOf lists the containers of a provider's Pod in the order of their start. The
// provider is all[at]; at is negative if it is not among them.
func containersOf(p secretsprovider.Provider) (all []corev1.Container, at int) {
	all = slices.Concat(p.Pod.Spec.InitContainers, p.Pod.Spec.Containers)
	return all, slices.IndexFunc(all, func(c corev1.Container) bool { return c.Name == p.Container.Name })
}

func both(a, b config.Validation) config.Validation {
	return config.Validation{Errors: append(a.Errors, b.Errors...), Warnings: append(a.Warnings, b.Warnings...)}
}

// checkFileKeys checks the variables that the kubelet reads from a provider's files: each
// file and each key must exist once the container starts. The provider is all[at].
func checkFileKeys(p secretsprovider.Provider, all []corev1.Container, at int) (v config.Validation) {
	spec := &p.Pod.Spec
	provider, regular := all[at], at >= len(spec.InitContainers)
	files, names := providedFiles(p.Config, provider.VolumeMounts)
	for i, c := range all {
		for _, e := range c.Env {
			if i == at || e.ValueFrom == nil || e.ValueFrom.FileKeyRef == nil {
				continue
			}
			ref := e.ValueFrom.FileKeyRef
			if names[ref.VolumeName] == nil {
				continue // the files are from somebody else
			}
			fail := func(format string, args ...any) {
				v.Errors = append(v.Errors, config.Problem{Key: "container " + c.Name + ": variable " + e.Name, Message: fmt.Sprintf(format, args...)})
			}
			t := files[volumeFile{ref.VolumeName, path.Clean(ref.Path)}]
			switch {
			case !isEmptyDir(spec, ref.VolumeName):
				fail("the volume %s is not an emptyDir, and Kubernetes reads variables only from such a volume", ref.VolumeName)
			case t == nil:
				fail("no group writes the file %q; the groups write %s", ref.Path, strings.Join(names[ref.VolumeName], ", "))
			case t.Format == targets.FormatTemplate:
			case t.Format != targets.FormatKubernetesEnv:
				fail("the kubelet cannot read the format %s of the group %s; use format kubernetes-env", t.Format, t.Group)
			case !slices.ContainsFunc(t.Entries, func(e targets.Entry) bool { return e.Alias == ref.Key }):
				fail("the group %s has no alias %q, so the container cannot start", t.Group, ref.Key)
			}
			earlier := spec.InitContainers[:min(i, len(spec.InitContainers))]
			switch exists := slices.ContainsFunc(earlier, func(c corev1.Container) bool { return writesTo(c, ref.VolumeName) }); {
			case !exists:
				fail("the container can start before its file exists; make %s the first of initContainers", provider.Name)
			case !regular && i > at && continues(provider):
				v.Warnings = append(v.Warnings, config.Problem{Key: "container " + provider.Name,
					Message: "without a startup probe, the container " + c.Name + " can start before its file exists, and fail; add startupProbe with the command /syncer probe provided"})
			}
		}
	}
	v.Warnings = slices.CompactFunc(v.Warnings, func(a, b config.Problem) bool { return a == b })
	return v
}

// variablesFrom lists the variables that containers of a provider's Pod read from the file of
// a group, for each container.
func variablesFrom(p secretsprovider.Provider, group string) (lines []string) {
	all, at := containersOf(p)
	if at < 0 {
		return nil
	}
	files, _ := providedFiles(p.Config, all[at].VolumeMounts)
	for _, c := range all {
		var names []string
		for _, e := range c.Env {
			if e.ValueFrom == nil || e.ValueFrom.FileKeyRef == nil {
				continue
			}
			ref := e.ValueFrom.FileKeyRef
			if t := files[volumeFile{ref.VolumeName, path.Clean(ref.Path)}]; t != nil && t.Group == group {
				names = append(names, e.Name)
			}
		}
		if len(names) > 0 {
			lines = append(lines, c.Name+": "+strings.Join(names, ", "))
		}
	}
	return lines
}

// providedFiles returns the targets by their files, and the paths of these files by their
// volumes.
func providedFiles(cfg *config.Config, mounts []corev1.VolumeMount) (files map[volumeFile]*targets.Target, names map[string][]string) {
	files, names = map[volumeFile]*targets.Target{}, map[string][]string{}
	for _, t := range cfg.Targets {
		full, deepest := path.Join(cfg.Folders.Secrets, t.File.Path), ""
		var in volumeFile
		for _, m := range mounts {
			folder := path.Clean(m.MountPath)
			if below, ok := strings.CutPrefix(full, folder+"/"); ok && len(folder) > len(deepest) {
				in, deepest = volumeFile{m.Name, path.Join(m.SubPath, below)}, folder
			}
		}
		if in.volume != "" {
			files[in] = t
			names[in.volume] = append(names[in.volume], in.path)
		}
	}
	return files, names
}

func writesTo(c corev1.Container, volume string) bool {
	return slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == volume && !m.ReadOnly })
}

// continues reports whether the next container starts as soon as this sidecar runs.
func continues(c corev1.Container) bool {
	return c.RestartPolicy != nil && c.StartupProbe == nil && (c.Lifecycle == nil || c.Lifecycle.PostStart == nil)
}

func isEmptyDir(spec *corev1.PodSpec, volume string) bool {
	return slices.ContainsFunc(spec.Volumes, func(v corev1.Volume) bool { return v.Name == volume && v.EmptyDir != nil })
}

// checkRestartRule checks that the Pod can restart in place, if the settings ask for that.
func checkRestartRule(p secretsprovider.Provider, provider corev1.Container) (v config.Validation) {
	if !p.Config.InPlace.Enabled {
		return v
	}
	key := "container " + p.Container.Name
	if !slices.ContainsFunc(provider.RestartPolicyRules, restartsAll) {
		v.Errors = append(v.Errors, config.Problem{Key: key, Message: fmt.Sprintf(
			"restart-app-in-place restarts only Syncer without a rule; add restartPolicyRules: [{action: RestartAllContainers, exitCodes: {operator: In, values: [%d]}}], for Kubernetes 1.36", config.InPlaceStatus)})
	}
	if provider.RestartPolicy == nil {
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
