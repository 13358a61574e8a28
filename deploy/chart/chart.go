// Package chart contains the parts of Syncer's Helm chart that describe the sidecar.
package chart

import "embed"

// Files are the chart's metadata, its default values, and the templates of the sidecar.
//
//go:embed syncer/Chart.yaml syncer/values.yaml
//go:embed syncer/templates/_names.tpl syncer/templates/_pod.tpl syncer/templates/_sidecar.tpl
var Files embed.FS
