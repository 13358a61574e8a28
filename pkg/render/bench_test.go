package render

import (
	"fmt"
	"strings"
	"testing"

	"github.com/secretsync/syncer/pkg/targets"
)

// BenchmarkRender1000Groups renders 1,000 groups of 5 values in each format;
// the figures are also given for a group.
func BenchmarkRender1000Groups(b *testing.B) {
	const groups = 1000
	template := `{{ range .SecretsArray }}{{ .Alias }}={{ .Value | b64enc }};{{ end }}{{ secret "key0" }}`
	for _, format := range allFormats() {
		b.Run(string(format), func(b *testing.B) {
			ts, items := make([]*targets.Target, groups), make([][]Item, groups)
			for g := range groups {
				var pairs []string
				for i := range 5 {
					pairs = append(pairs, fmt.Sprintf("key%d", i), strings.Repeat("pa$s\"w0rd", 1+(g+i)%10))
				}
				ts[g], items[g] = target(format, pairs...)
			}
			b.ReportAllocs()
			for b.Loop() {
				for g := range groups {
					result, err := Render(ts[g], template, items[g])
					if err != nil {
						b.Fatal(err)
					}
					for _, part := range result.Parts {
						part.Wipe()
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*groups), "µs/group")
		})
	}
}
