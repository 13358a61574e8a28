package health

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// TestTheReferenceHasEachMetric compares the table of docs/metrics.md with the
// metrics of this package, by name and labels.
func TestTheReferenceHasEachMetric(t *testing.T) {
	m := NewMetrics("")
	m.Watch("default", nil)
	m.WatchFolder(nil)
	all := make(chan *prometheus.Desc)
	go func() {
		defer close(all)
		m.registry.Describe(all)
	}()
	described := regexp.MustCompile(`fqName: "(syncer_\w+)".* constLabels: \{(.*)\}, variableLabels: \{(.*)\}`)
	label := regexp.MustCompile(`[a-z]+`)
	want := map[string][]string{}
	for desc := range all {
		if found := described.FindStringSubmatch(desc.String()); found != nil {
			constant := strings.ReplaceAll(found[2], `="default"`, "")
			want[found[1]] = slices.Sorted(slices.Values(label.FindAllString(constant+","+found[3], -1)))
		}
	}
	page, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(syncer_\\w+)` \\| (?:counter|gauge|histogram)(?:: ([^|]*))? \\|.*\\| `.*syncer_.*` \\|$").FindAllStringSubmatch(string(page), -1) {
		got[row[1]] = slices.Sorted(slices.Values(label.FindAllString(row[2], -1)))
	}
	if len(want) < 20 || !maps.EqualFunc(want, got, slices.Equal) {
		t.Errorf("docs/metrics.md has\n%v\nwant\n%v", got, want)
	}
}
