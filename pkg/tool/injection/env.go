package injection

import (
	"maps"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/secretsync/syncer/internal/lazyregexp"
	"github.com/secretsync/syncer/pkg/targets"
)

// envAnnotation and the name of a group are the annotation that names variables.
const envAnnotation = "conjur.org/inject-env."

// environment is what annotations of a Pod say of the variables that the kubelet reads from
// the files of groups.
type environment struct {
	annotations map[string]string
	groups      []string // sorted
	variables   []variable
}

// variable is a variable of a container.
type variable struct {
	group, name string
	path        string // of the file, below the folder of the secrets
}

// variableNames is what Kubernetes accepts both as a name of a variable and as a key of fileKeyRef.
var variableNames = lazyregexp.New(`^[-._a-zA-Z][-._a-zA-Z0-9]*$`)

func newEnvironment(annotations map[string]string) environment {
	env := environment{annotations: annotations}
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		group, ok := strings.CutPrefix(key, envAnnotation)
		if !ok {
			continue
		}
		env.groups = append(env.groups, group)
		file := env.path(group)
		if file == "" || strings.HasSuffix(file, "/") {
			file += targets.DefaultFileName(group, targets.FormatKubernetesEnv)
		}
		for _, name := range namesIn(annotations[key]) {
			env.variables = append(env.variables, variable{group, name, file})
		}
	}
	return env
}

func (env environment) path(group string) string {
	return env.annotations["conjur.org/secret-file-path."+group]
}

// namesIn splits a list at its commas. Of a long list it returns none, as the policy does.
func namesIn(list string) (names []string) {
	if len(list) > 16384 {
		return nil
	}
	for name := range strings.SplitSeq(list, ",") {
		if name = strings.TrimSpace(name); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// entries returns the variables of a container, with the files in a volume.
func (env environment) entries(volume string) (entries []corev1.EnvVar) {
	for _, v := range env.variables {
		entries = append(entries, corev1.EnvVar{Name: v.name, ValueFrom: &corev1.EnvVarSource{
			FileKeyRef: &corev1.FileKeySelector{VolumeName: volume, Path: v.path, Key: v.name},
		}})
	}
	return entries
}

// mistakes lists the errors in the annotations.
func (env environment) mistakes() (list []string) {
	for _, c := range []struct {
		message string
		wrong   func(group string) bool
	}{
		{"set conjur.org/conjur-secrets, and conjur.org/secret-file-format to kubernetes-env, for the variables of ", func(group string) bool {
			_, defined := env.annotations["conjur.org/conjur-secrets."+group]
			return !defined || env.annotations["conjur.org/secret-file-format."+group] != string(targets.FormatKubernetesEnv)
		}},
		{"set conjur.org/secret-file-path to a relative path without .. for the variables of ", func(group string) bool {
			file := env.path(group)
			return path.IsAbs(file) || slices.Contains(strings.Split(file, "/"), "..")
		}},
		{"list names of environment variables, separated by commas, each once, in conjur.org/inject-env of ", func(group string) bool {
			of := func(v variable) bool { return v.group == group }
			return !slices.ContainsFunc(env.variables, of) || slices.ContainsFunc(env.variables, func(v variable) bool {
				return of(v) && (!variableNames().MatchString(v.name) || env.named(v.name) > 1)
			})
		}},
	} {
		if groups := slices.DeleteFunc(slices.Clone(env.groups), func(group string) bool { return !c.wrong(group) }); len(groups) > 0 {
			list = append(list, c.message+strings.Join(groups, ", "))
		}
	}
	return list
}

// named returns how often the annotations name a variable.
func (env environment) named(name string) (times int) {
	for _, v := range env.variables {
		if v.name == name {
			times++
		}
	}
	return times
}

// clashes reports whether a container sets one of the variables itself.
func (env environment) clashes(c *corev1.Container) bool {
	return slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool { return env.named(e.Name) > 0 })
}

// in reports whether a container has all the variables from a volume.
func (env environment) in(c *corev1.Container, volume string) bool {
	return !slices.ContainsFunc(env.variables, func(v variable) bool {
		return !slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool {
			return e.Name == v.name && e.ValueFrom != nil && e.ValueFrom.FileKeyRef != nil && e.ValueFrom.FileKeyRef.VolumeName == volume
		})
	})
}
