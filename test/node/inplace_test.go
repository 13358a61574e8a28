//go:build node

package node

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestRestartInPlaceGivesAnUnchangedApplicationNewVariables: the containers of the same Pod
// start again once for each change, with the new value in the environment. A kill of
// Syncer alone restarts nothing else.
func TestRestartInPlaceGivesAnUnchangedApplicationNewVariables(t *testing.T) {
	t.Parallel()
	w := newWorld(t, shop())
	spec := w.documented(files("secret-file-format.db", "kubernetes-env", "secret-file-path.db", "db.env", "secrets-refresh-interval", "1s",
		"restart-app-in-place", "true", "restart-app-every", "1s"), "run", secretsDir+"db.env")
	spec.Spec.InitContainers[0].RestartPolicyRules = []corev1.ContainerRestartRule{{
		Action:    corev1.ContainerRestartRuleActionRestartAllContainers,
		ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{Operator: corev1.ContainerRestartRuleOnExitCodesOpIn, Values: []int32{85}},
	}}
	app := &spec.Spec.Containers[0]
	app.Env = append(app.Env, corev1.EnvVar{Name: "DB_PASSWORD", ValueFrom: &corev1.EnvVarSource{
		FileKeyRef: &corev1.FileKeySelector{VolumeName: app.VolumeMounts[0].Name, Path: "db.env", Key: "password"},
	}})
	p := w.start("shop", spec)
	p.ready()
	first := p.get()
	for i, value := range []string{"second", "third"} {
		w.set(map[string]string{"shop/password": value})
		p.awaitRestarts("app", i+1)
		p.ready()
		var seen string
		p.eventually("the new value in the environment", func() bool {
			text, err := p.exec("app", "/app", "env", "DB_PASSWORD")
			seen = strings.TrimSpace(text)
			return err == nil && seen == value
		})
	}
	p.await("two restarts, and no more", func(found *corev1.Pod) bool {
		return container(found, "app").RestartCount == 2 && container(found, "syncer").RestartCount == 2
	})
	if found := p.get(); found.UID != first.UID || found.Status.PodIP != first.Status.PodIP {
		t.Errorf("another Pod: %s, %s", found.UID, found.Status.PodIP)
	}
}
