// Package charts renders charts and kustomizations with the engines of Helm and
// Kustomize, but without their programs.
package charts

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/engine"
)

// Release is one installation of a chart.
type Release struct {
	Name, Namespace string
	Revision        int            // 1 is an installation, more is an upgrade
	KubeVersion     string         // of the cluster, such as v1.36.0
	APIVersions     []string       // that the cluster serves; nil: there is no cluster
	Notes           bool           // print the notes instead of the objects
	Set             map[string]any // goes before the values
}

// Render prints the release's objects in the order of their files, or its
// notes. Values that the chart's schema does not allow are an error.
func (r Release) Render(out io.Writer, dir string, values []byte) error {
	chart, err := loader.Load(dir)
	if err != nil {
		return err
	}
	given, err := loader.LoadValues(bytes.NewReader(values))
	if err != nil {
		return err
	}
	given = util.MergeTables(r.Set, given)
	if err := chartutil.ProcessDependencies(chart, given); err != nil {
		return err
	}
	version, err := common.ParseKubeVersion(r.KubeVersion)
	if err != nil {
		return err
	}
	capabilities := *common.DefaultCapabilities
	capabilities.KubeVersion = *version
	if r.APIVersions != nil {
		capabilities.APIVersions = r.APIVersions
	}
	if wanted := chart.Metadata.KubeVersion; wanted != "" && !chartutil.IsCompatibleRange(wanted, version.Version) {
		return fmt.Errorf("the chart needs Kubernetes %s, not %s", wanted, version.Version)
	}
	full, err := util.ToRenderValues(chart, given, common.ReleaseOptions{
		Name: r.Name, Namespace: r.Namespace, Revision: r.Revision, IsInstall: r.Revision == 1, IsUpgrade: r.Revision > 1,
	}, &capabilities)
	if err != nil {
		return err
	}
	files, err := engine.Render(chart, full)
	if err != nil {
		return err
	}
	return r.print(out, chart.Name(), files)
}

func (r Release) print(out io.Writer, chart string, files map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		text := strings.TrimSpace(files[name])
		isNotes := path.Base(name) == "NOTES.txt"
		switch {
		case text == "" || isNotes != r.Notes:
			continue
		case isNotes && path.Dir(name) != chart+"/templates":
			continue // of a chart that this one depends on
		case isNotes:
			_, err := fmt.Fprintln(out, text)
			return err
		}
		if _, err := fmt.Fprintf(out, "---\n# Source: %s\n%s\n", name, strings.TrimPrefix(text, "---\n")); err != nil {
			return err
		}
	}
	return nil
}
