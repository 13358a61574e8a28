// Package injection works out what the chart's admission policy does to a Pod with its
// label. It renders the same templates, so that the sidecar is the same. Tests compare
// both for Pods of every shape.
package injection

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"text/template"

	corev1 "k8s.io/api/core/v1"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/secretsync/syncer/deploy/chart"
)

// Sidecar is everything that the policy adds to a Pod.
type Sidecar struct {
	// Label is the key of the label that asks for it.
	Label string
	// Mode is the mode for the label "true": sidecar or init.
	Mode string
	// Containers is Syncer's container, by mode.
	Containers map[string]corev1.Container
	// Mounts are those of the application's containers. The first is that of the secrets.
	Mounts []corev1.VolumeMount
	// Volumes are those of the Pod.
	Volumes []corev1.Volume
}

// Assumed returns the sidecar of the chart's default values, with a made-up connection to
// Conjur.
func Assumed() (*Sidecar, error) {
	return Render([]byte("config: {conjur: {applianceUrl: https://not-known.invalid, account: not-known}}"))
}

// Render returns the sidecar of the chart with these values, as YAML.
func Render(values []byte) (*Sidecar, error) {
	all, err := readChart("values.yaml")
	if err != nil {
		return nil, err
	}
	var own map[string]any
	if err := sigsyaml.Unmarshal(values, &own); err != nil {
		return nil, fmt.Errorf("the values are not a YAML map: %w", err)
	}
	defaults, err := readChart("values.yaml")
	if err != nil {
		return nil, err
	}
	merge(all, own)
	if err := errors.Join(append(unknown("", own, defaults), invalid(all)...)...); err != nil {
		return nil, err
	}
	meta, err := readChart("Chart.yaml")
	if err != nil {
		return nil, err
	}
	s := &Sidecar{Containers: map[string]corev1.Container{}}
	s.Label, _ = section(all, "inject")["label"].(string)
	s.Mode, _ = section(all, "sidecar")["mode"].(string)
	scope := map[string]any{"Values": all, "Chart": map[string]any{"Name": meta["name"], "AppVersion": meta["appVersion"]}}
	for _, mode := range []string{"sidecar", "init"} {
		section(all, "sidecar")["mode"] = mode
		if mode == "init" {
			section(all, "sidecar")["restartInPlace"] = false
		}
		var containers []corev1.Container
		if err := renderInto(&containers, "syncer.sidecar", scope); err != nil {
			return nil, err
		}
		s.Containers[mode] = containers[0]
	}
	if err := renderInto(&s.Mounts, "syncer.sidecarMounts", scope); err != nil {
		return nil, err
	}
	return s, renderInto(&s.Volumes, "syncer.sidecarVolumes", scope)
}

// readChart reads one of the chart's YAML files.
func readChart(name string) (content map[string]any, err error) {
	text, err := chart.Files.ReadFile("syncer/" + name)
	if err != nil {
		return nil, err
	}
	return content, sigsyaml.Unmarshal(text, &content)
}

// failure is what a template says of the values.
type failure string

func (f failure) Error() string { return string(f) }

// renderInto renders a named template of the chart, and decodes its YAML.
func renderInto(into any, name string, scope map[string]any) error {
	t := template.New("chart").Option("missingkey=zero")
	functions := chartFunctions()
	functions["include"] = func(name string, scope any) (string, error) {
		var out strings.Builder
		err := t.ExecuteTemplate(&out, name, scope)
		return out.String(), err
	}
	if _, err := t.Funcs(functions).ParseFS(chart.Files, "syncer/templates/*.tpl"); err != nil {
		return err
	}
	var out bytes.Buffer
	err := t.ExecuteTemplate(&out, name, scope)
	if told, ok := errors.AsType[failure](err); ok {
		return told // without the places in the templates
	}
	if err != nil {
		return err
	}
	return sigsyaml.UnmarshalStrict(out.Bytes(), into)
}
