package consumers

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// uses reports whether the containers of a Pod use a Secret. Secrets for pulling images
// do not count.
func uses(pod corev1.PodSpec, secret string) bool {
	for _, v := range pod.Volumes {
		if v.Secret != nil && v.Secret.SecretName == secret {
			return true
		}
		if v.Projected != nil && slices.ContainsFunc(v.Projected.Sources, func(p corev1.VolumeProjection) bool {
			return p.Secret != nil && p.Secret.Name == secret
		}) {
			return true
		}
	}
	for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
		if fromEnvironment(c.Env, c.EnvFrom, secret) {
			return true
		}
	}
	return slices.ContainsFunc(pod.EphemeralContainers, func(c corev1.EphemeralContainer) bool { return fromEnvironment(c.Env, c.EnvFrom, secret) })
}

func fromEnvironment(env []corev1.EnvVar, from []corev1.EnvFromSource, secret string) bool {
	return slices.ContainsFunc(env, func(e corev1.EnvVar) bool {
		return e.ValueFrom != nil && e.ValueFrom.SecretKeyRef != nil && e.ValueFrom.SecretKeyRef.Name == secret
	}) || slices.ContainsFunc(from, func(e corev1.EnvFromSource) bool { return e.SecretRef != nil && e.SecretRef.Name == secret })
}
