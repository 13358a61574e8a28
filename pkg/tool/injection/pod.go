package injection

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/internal/lazyregexp"
	corev1 "k8s.io/api/core/v1"
)

// Name is the name of the container that is added.
const Name = "syncer"

// Annotations of a Pod for the policy.
const (
	containersAnnotation = "conjur.org/inject-containers"
	folderAnnotation     = "conjur.org/inject-folder"
	modeAnnotation       = "conjur.org/container-mode"
	inPlaceAnnotation    = "conjur.org/restart-app-in-place"
)

// Wanted reports whether a Pod asks for Syncer, as the policy's binding does.
func (s *Sidecar) Wanted(pod *corev1.PodTemplateSpec) bool {
	value, ok := pod.Labels[s.Label]
	return ok && value != "false"
}

// Add adds Syncer to a Pod that asks for it. If the Pod has it already, as a whole, Add
// returns false. If it cannot be added, problems says why, with the words of the policy.
func (s *Sidecar) Add(pod *corev1.PodTemplateSpec) (added bool, problems []string) {
	p := s.inspectPod(pod)
	problems = p.mistakes()
	if p.whole() {
		return false, problems
	}
	if problems = append(problems, p.parts()...); len(problems) > 0 {
		return false, problems
	}
	readers, mounts, env := s.Readers(pod)
	for _, c := range p.containers() {
		if slices.Contains(readers, c.Name) {
			c.VolumeMounts = append(c.VolumeMounts, mounts...)
			c.Env = slices.Concat(env, c.Env)
		}
	}
	pod.Spec.Volumes = append(pod.Spec.Volumes, s.Volumes...)
	own := s.Containers[p.mode]
	if p.mode != "init" && pod.Annotations[inPlaceAnnotation] == "true" {
		own.RestartPolicyRules = []corev1.ContainerRestartRule{{
			Action:    corev1.ContainerRestartRuleActionRestartAllContainers,
			ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{Operator: corev1.ContainerRestartRuleOnExitCodesOpIn, Values: []int32{config.InPlaceStatus}},
		}}
	}
	pod.Spec.InitContainers = slices.Insert(pod.Spec.InitContainers, 0, own)
	return true, nil
}

// Readers returns the names of the containers that get the secrets, their mounts, and their
// first variables.
func (s *Sidecar) Readers(pod *corev1.PodTemplateSpec) (names []string, mounts []corev1.VolumeMount, env []corev1.EnvVar) {
	p := s.inspectPod(pod)
	mounts = slices.Clone(s.Mounts)
	mounts[0].MountPath = p.folder
	return p.chosen, mounts, p.env.entries(mounts[0].Name)
}

// shape is what matters of a Pod. Its fields are the variables of the policy.
type shape struct {
	*Sidecar
	pod                    *corev1.PodTemplateSpec
	label, ownMode, mode   string
	folder, containersList string
	wrongFolder            bool
	listed, chosen         []string
	env                    environment
}

func (s *Sidecar) inspectPod(pod *corev1.PodTemplateSpec) *shape {
	p := &shape{
		Sidecar: s, pod: pod, label: pod.Labels[s.Label], mode: s.Mode, folder: s.Mounts[0].MountPath,
		ownMode: pod.Annotations[modeAnnotation], containersList: pod.Annotations[containersAnnotation],
		env: newEnvironment(pod.Annotations),
	}
	switch {
	case p.label == "init":
		p.mode = "init"
	case p.ownMode != "":
		p.mode = p.ownMode
	}
	if own := pod.Annotations[folderAnnotation]; own != "" {
		if p.wrongFolder = s.wrongFolder(own); !p.wrongFolder {
			p.folder = own
		}
	}
	p.listed = namesIn(p.containersList)
	if p.chosen = p.listed; len(p.listed) == 0 {
		for _, c := range pod.Spec.Containers {
			p.chosen = append(p.chosen, c.Name)
		}
	}
	return p
}

// containers returns all containers, init containers first.
func (p *shape) containers() (all []*corev1.Container) {
	for i := range p.pod.Spec.InitContainers {
		all = append(all, &p.pod.Spec.InitContainers[i])
	}
	for i := range p.pod.Spec.Containers {
		all = append(all, &p.pod.Spec.Containers[i])
	}
	return all
}

// wrongFolder reports whether the secrets cannot be mounted at a folder.
func (s *Sidecar) wrongFolder(folder string) bool {
	return !folders().MatchString(folder) || len(folder) > 256 || path.Clean(folder) != folder || systemFolders().MatchString(folder) ||
		slices.ContainsFunc(s.Mounts[1:], func(m corev1.VolumeMount) bool {
			return within(folder, m.MountPath) || within(m.MountPath, folder)
		})
}

// systemFolders matches folders in which a mount would hide programs, libraries, devices,
// certificates, tokens or the state of the system. Most are those of the Filesystem
// Hierarchy Standard. Of /etc, /home, /opt, /run, /var and the like, subfolders remain.
var (
	folders       = lazyregexp.New(`^(/[A-Za-z0-9._-]+)+$`)
	systemFolders = lazyregexp.New(`^/(bin|boot|dev|lib|lib32|lib64|libx32|proc|root|sbin|sys|usr)(/|$)|^/(etc|home|media|mnt|opt|run|srv|tmp|var)$|^/etc/(alternatives|ca-certificates|group|hostname|hosts|kubernetes|ld[.]so[.][a-z.]+|nsswitch[.]conf|pam[.]d|passwd|pki|resolv[.]conf|security|shadow|ssl)(/|$)|^/var/(cache|lib|local|lock|log|opt|run|spool|tmp)$|^(/var)?/run/(lock|secrets)(/|$)`)
)

// mistakes lists the errors in the label, the annotations and the user of the Pod.
func (p *shape) mistakes() (list []string) {
	add := func(wrong bool, format string, args ...any) {
		if wrong {
			list = append(list, fmt.Sprintf(format, args...))
		}
	}
	add(p.label != "true" && p.label != "init", `set the label %s to "true", "init" or "false"`, p.Label)
	add(!slices.Contains([]string{"", "sidecar", "init"}, p.ownMode), "set the annotation conjur.org/container-mode to sidecar or init")
	add(p.label == "init" && p.ownMode == "sidecar", `the label %s is "init", but the annotation conjur.org/container-mode is sidecar: remove one of them`, p.Label)
	var places []string
	for _, m := range p.Mounts[1:] {
		places = append(places, m.MountPath)
	}
	add(p.wrongFolder, "set the annotation conjur.org/inject-folder to an absolute path without . and .., such as /conjur/secrets, not a folder of the system, outside %s", strings.Join(places, " "))
	for key := range maps.Keys(p.pod.Annotations) {
		if strings.HasPrefix(key, "conjur.org/inject-") && key != containersAnnotation && key != folderAnnotation && !strings.HasPrefix(key, envAnnotation) {
			add(true, "of the annotations that begin with conjur.org/inject-, only conjur.org/inject-containers, conjur.org/inject-folder and conjur.org/inject-env.GROUP exist: remove the others")
			break
		}
	}
	list = append(list, p.env.mistakes()...)
	add(p.containersList != "" && len(p.listed) == 0 || slices.ContainsFunc(p.listed, func(name string) bool {
		return !slices.ContainsFunc(p.containers(), func(c *corev1.Container) bool { return c.Name == name })
	}), "the annotation conjur.org/inject-containers lists a container that the Pod does not have: list names of its containers, separated by commas")
	security := p.pod.Spec.SecurityContext
	add(security != nil && security.RunAsUser != nil && *security.RunAsUser == 0,
		"the Pod's securityContext.runAsUser is 0, and Syncer does not run as root: set it at the containers that need it")
	windows := p.pod.Spec.OS != nil && p.pod.Spec.OS.Name == corev1.Windows || p.pod.Spec.NodeSelector[corev1.LabelOSStable] == string(corev1.Windows)
	add(windows, "the Pod is for Windows, and Syncer for Linux: remove the label")
	if names := p.writers(); len(names) > 0 {
		add(true, "set readOnly: true for the mounts of Syncer's volumes in %s", strings.Join(shortened(names), ", "))
	}
	return list
}

// parts lists what the Pod has already and would then have twice.
func (p *shape) parts() (list []string) {
	var occupied, doubled []string
	climbing := false
	places := []string{p.folder}
	for _, m := range p.Mounts[1:] {
		places = append(places, m.MountPath)
	}
	for _, c := range p.containers() {
		if c.Name == Name {
			list = append(list, "the Pod already has a container syncer: rename it")
		}
		if !slices.Contains(p.chosen, c.Name) {
			continue
		}
		occupies := false
		for _, m := range c.VolumeMounts {
			if slices.Contains(strings.Split(m.MountPath, "/"), "..") {
				climbing = true // and the policy does not know the place
				continue
			}
			occupies = occupies || slices.ContainsFunc(places, func(place string) bool { return within(path.Clean("/"+m.MountPath), place) })
		}
		if occupies {
			occupied = append(occupied, c.Name)
		}
		if p.env.clashes(c) {
			doubled = append(doubled, c.Name)
		}
	}
	for _, v := range p.pod.Spec.Volumes {
		if slices.ContainsFunc(p.Volumes, func(own corev1.Volume) bool { return own.Name == v.Name }) {
			list = append(list, fmt.Sprintf("the Pod already has a volume %s: rename it", v.Name))
		}
	}
	if climbing {
		list = append(list, "write the mount paths of the containers that get the secrets without ..")
	}
	if len(occupied) > 0 {
		list = append(list, fmt.Sprintf("move the mounts in %s of %s", strings.Join(places, " or "), strings.Join(shortened(occupied), ", ")))
	}
	if len(doubled) > 0 {
		list = append(list, "remove the variables of conjur.org/inject-env from env of "+strings.Join(shortened(doubled), ", "))
	}
	return list
}

// writers lists the containers that could write to a volume of Syncer's, except to one that
// is meant for that. Only Syncer's own container may.
func (p *shape) writers() (names []string) {
	for _, c := range p.containers() {
		if c.Name != Name && slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool {
			is := func(name string) bool { return name == m.Name }
			return !m.ReadOnly && slices.ContainsFunc(p.Volumes, func(v corev1.Volume) bool { return is(v.Name) }) &&
				!slices.ContainsFunc(p.Mounts, func(own corev1.VolumeMount) bool { return is(own.Name) && !own.ReadOnly })
		}) {
			names = append(names, c.Name)
		}
	}
	return names
}

// shortened shortens a list of containers for a message.
func shortened(names []string) []string {
	if n := len(names); n > 9 {
		return []string{names[0], fmt.Sprintf("%d other containers", n-1)}
	}
	return names
}

// whole reports whether the Pod has Syncer, and each listed container has the secrets.
func (p *shape) whole() bool {
	var readers []string
	for _, c := range p.containers() {
		if slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == p.Mounts[0].Name }) && (c.Name == Name || p.env.in(c, p.Mounts[0].Name)) {
			readers = append(readers, c.Name)
		}
	}
	init := slices.ContainsFunc(p.pod.Spec.InitContainers, func(c corev1.Container) bool { return c.Name == Name })
	others := slices.DeleteFunc(slices.Clone(readers), func(name string) bool { return name == Name })
	return init && slices.Contains(readers, Name) && len(others) > 0 &&
		!slices.ContainsFunc(p.listed, func(name string) bool { return !slices.Contains(others, name) })
}

// within reports whether a path is a folder, or below it.
func within(path, folder string) bool { return strings.HasPrefix(path+"/", folder+"/") }
