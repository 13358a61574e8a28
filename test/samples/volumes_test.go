//go:build linux && long

package samples

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/secretsync/syncer/test/podtest"
)

// volume returns the folder of a volume of the Pod, which it makes at the first
// call.
func (p *pod) volume(name string) string {
	p.Helper()
	dir := filepath.Join(p.dir, "volumes", name)
	if _, err := os.Stat(dir); err == nil {
		return dir
	}
	i := slices.IndexFunc(p.spec.Volumes, func(v corev1.Volume) bool { return v.Name == name })
	if i < 0 {
		p.Fatalf("there is no volume %s", name)
	}
	p.check(os.MkdirAll(dir, 0o777))
	v := p.spec.Volumes[i]
	switch {
	case v.EmptyDir != nil && v.EmptyDir.Medium == corev1.StorageMediumMemory:
		p.check(os.Chmod(dir, 0o777|os.ModeSticky)) // as a tmpfs is found in Pods
	case v.EmptyDir != nil:
		p.check(os.Chmod(dir, 0o777))
	case v.DownwardAPI != nil:
		p.publish(dir, p.downward(v.DownwardAPI.Items))
	case v.ConfigMap != nil:
		p.publish(dir, p.configMap(v.ConfigMap.Name, v.ConfigMap.Items))
	case v.Secret != nil:
		p.publish(dir, p.secret(v.Secret.SecretName, v.Secret.Items))
	case v.Projected != nil:
		p.publish(dir, p.projected(v.Projected.Sources))
	default:
		p.Fatalf("the volume %s is of a kind that is not known here", name)
	}
	return dir
}

// publish writes files as a kubelet does: in a folder that can be exchanged as
// a whole, with links to them.
func (p *pod) publish(dir string, files map[string]string) {
	p.Helper()
	p.check(os.Mkdir(filepath.Join(dir, "..1"), 0o755))
	p.check(os.Symlink("..1", filepath.Join(dir, "..data")))
	for _, name := range slices.Sorted(maps.Keys(files)) {
		p.check(os.WriteFile(filepath.Join(dir, "..1", name), []byte(files[name]), 0o644))
		p.check(os.Symlink(filepath.Join("..data", name), filepath.Join(dir, name)))
	}
}

func (p *pod) projected(sources []corev1.VolumeProjection) map[string]string {
	p.Helper()
	files := map[string]string{}
	for _, s := range sources {
		switch {
		case s.ServiceAccountToken != nil:
			var audiences []string
			if s.ServiceAccountToken.Audience != "" {
				audiences = []string{s.ServiceAccountToken.Audience}
			}
			files[s.ServiceAccountToken.Path] = plane.Token(p.TB, p.namespace, p.spec.ServiceAccountName, audiences...)
		case s.ConfigMap != nil:
			maps.Copy(files, p.configMap(s.ConfigMap.Name, s.ConfigMap.Items))
		case s.Secret != nil:
			maps.Copy(files, p.secret(s.Secret.Name, s.Secret.Items))
		case s.DownwardAPI != nil:
			maps.Copy(files, p.downward(s.DownwardAPI.Items))
		}
	}
	return files
}

func (p *pod) downward(items []corev1.DownwardAPIVolumeFile) map[string]string {
	files := map[string]string{}
	for _, item := range items {
		files[item.Path] = p.field(item.FieldRef.FieldPath)
	}
	return files
}

// field returns the value of a Pod's field for the Downward API.
func (p *pod) field(path string) string {
	p.Helper()
	switch path {
	case "metadata.name":
		return p.name
	case "metadata.namespace":
		return p.namespace
	case "metadata.annotations":
		var text strings.Builder
		for _, key := range slices.Sorted(maps.Keys(p.annotations)) {
			fmt.Fprintf(&text, "%s=%q\n", key, p.annotations[key])
		}
		return text.String()
	}
	p.Fatalf("the field %s is not known here", path)
	return ""
}

func (p *pod) configMap(name string, items []corev1.KeyToPath) map[string]string {
	p.Helper()
	m, err := plane.Core.ConfigMaps(p.namespace).Get(p.Context(), name, metav1.GetOptions{})
	p.check(err)
	return chosen(m.Data, items)
}

func (p *pod) secret(name string, items []corev1.KeyToPath) map[string]string {
	p.Helper()
	data := map[string]string{}
	for key, value := range p.readSecret(name) {
		data[key] = string(value)
	}
	return chosen(data, items)
}

func chosen(data map[string]string, items []corev1.KeyToPath) map[string]string {
	if items == nil {
		return data
	}
	files := map[string]string{}
	for _, item := range items {
		files[item.Path] = data[item.Key]
	}
	return files
}

// accountDir is the folder of the service account's token in a container.
const accountDir = "/var/run/secrets/kubernetes.io/serviceaccount"

// account is the volume that a cluster adds to each Pod.
func (p *pod) account() string {
	p.Helper()
	dir := filepath.Join(p.dir, "account")
	if err := os.Mkdir(dir, 0o755); err == nil {
		p.publish(dir, map[string]string{
			"token": plane.Token(p.TB, p.namespace, p.spec.ServiceAccountName), "ca.crt": string(plane.CA()), "namespace": p.namespace,
		})
	}
	return dir
}

// mounts are those of a container, parents first, as runtimes sort them.
func (p *pod) mounts(c corev1.Container) []podtest.Mount {
	p.Helper()
	list := []podtest.Mount{{Source: "/dev", Path: "/dev"}, {Source: p.account(), Path: accountDir, ReadOnly: true}}
	for _, m := range c.VolumeMounts {
		source := filepath.Join(p.volume(m.Name), m.SubPath)
		p.check(os.MkdirAll(source, 0o755))
		i := slices.IndexFunc(p.spec.Volumes, func(v corev1.Volume) bool { return v.Name == m.Name })
		list = append(list, podtest.Mount{
			Source: source, Path: filepath.Clean(m.MountPath), ReadOnly: m.ReadOnly || p.spec.Volumes[i].EmptyDir == nil,
		})
	}
	slices.SortStableFunc(list, func(a, b podtest.Mount) int {
		return cmp.Compare(strings.Count(a.Path, "/"), strings.Count(b.Path, "/"))
	})
	return list
}
