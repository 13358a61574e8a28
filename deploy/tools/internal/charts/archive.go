package charts

import (
	"time"

	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
)

// Archive packs the chart in a folder, as "helm package" does, into a file in out. All
// files have the one time, so that the same chart makes the same bytes. It returns the
// file's path.
func Archive(dir, out string, at time.Time) (string, error) {
	chart, err := loader.Load(dir)
	if err != nil {
		return "", err
	}
	chart.ModTime, chart.SchemaModTime = at, at
	for _, f := range chart.Raw {
		f.ModTime = at
	}
	for _, f := range chart.Templates {
		f.ModTime = at
	}
	for _, f := range chart.Files {
		f.ModTime = at
	}
	return chartutil.Save(chart, out)
}
