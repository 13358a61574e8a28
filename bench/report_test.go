package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

func testReport() *Report {
	small, large := profiles()[0], profiles()[1]
	return &Report{
		Machine: Machine{OS: "linux", Arch: "amd64", Cores: 2, Go: "go1.26", Files: "tmpfs"},
		Date:    time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC),
		Profiles: []ProfileReport{
			{
				profile: small, refreshes: 20, incumbent: small.incumbent,
				syncer: figures{cpuPerRefresh: 1.234, dataRequests: 1, peakRSS: 33, changeMax: 900},
				bare:   figures{cpuPerRefresh: 0.5, dataRequests: 1, peakRSS: 10.04},
			},
			{profile: large, refreshes: 20, syncer: figures{cpuPerRefresh: 5}, bare: figures{}},
		},
	}
}

func TestReportAsTables(t *testing.T) {
	var out strings.Builder
	if err := testReport().WriteText(&out); err != nil {
		t.Fatal(err)
	}
	// Columns are two or more spaces apart.
	fields := func(line string) string {
		var columns []string
		for column := range strings.SplitSeq(strings.TrimSpace(line), "  ") {
			if column = strings.TrimSpace(column); column != "" {
				columns = append(columns, column)
			}
		}
		return strings.Join(columns, "|")
	}
	var got []string
	for line := range strings.Lines(out.String()) {
		got = append(got, fields(line))
	}
	want := []string{
		"linux/amd64, 2 cores, go1.26, files on tmpfs, 2026-11-21 12:00 UTC",
		"",
		"small: 5 groups × 5 variables of 10–100 bytes, TLS, interval 1s, 20 unchanged refreshes",
		"",
		"figure|measured|bare client|incumbent 1.9 (measured once, not in this run)|to reach",
		"CPU per refresh|1.23 ms|0.50 ms|560 ms|1.5 ms|reached",
		"data requests per refresh|1.00|1.00|1|1|reached",
		"peak RSS|33.0 MiB|10.0 MiB|39 MiB|40 MiB|reached",
		"change to file, max|900 ms|–|–|1200 ms|reached",
		"",
		"large: 400 groups × 5 variables of 10–100 bytes, TLS, interval 1s, 20 unchanged refreshes",
		"",
		"figure|measured|bare client|to reach",
		"CPU per refresh|5.00 ms|–|10 ms|reached",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestReportNamesAnIncumbentOfThisRun(t *testing.T) {
	report := testReport()
	report.Profiles[0].incumbent = figures{cpuPerRefresh: 612.3456}
	report.Profiles[0].incumbentMeasured = true
	var out strings.Builder
	if err := report.WriteText(&out); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); strings.Contains(text, "not in this run") || !strings.Contains(text, "612.35 ms") {
		t.Error(text)
	}
}

func TestReportAsJSON(t *testing.T) {
	var out strings.Builder
	if err := testReport().WriteJSON(&out); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Machine  Machine
		Date     time.Time
		Profiles []struct {
			Profile                    string
			Variables, Refreshes       int
			IncumbentMeasuredInThisRun bool
			Rows                       []Row
		}
	}
	if err := json.Unmarshal([]byte(out.String()), &got); err != nil {
		t.Fatal(err)
	}
	if got.Machine != testReport().Machine || !got.Date.Equal(testReport().Date) {
		t.Errorf("machine %+v, date %s", got.Machine, got.Date)
	}
	small := got.Profiles[0]
	if small.Profile != "small" || small.Variables != 25 || small.Refreshes != 20 || small.IncumbentMeasuredInThisRun {
		t.Errorf("profile %+v", small)
	}
	rss, change := small.Rows[2], small.Rows[3]
	if rss.Figure != peakRSS || *rss.Measured != 33 || *rss.Bare != 10.04 || *rss.Incumbent != 39 || *rss.Reach != 40 || !*rss.Reached {
		t.Errorf("row %+v", rss)
	}
	if change.Bare != nil || change.Incumbent != nil || !*change.Reached {
		t.Errorf("row %+v", change)
	}
}

func TestMedian(t *testing.T) {
	if got := median([]float64{9, 1, 5}); got != 5 {
		t.Errorf("of three: %v", got)
	}
	if got := median([]float64{4, 1, 2, 9}); got != 3 {
		t.Errorf("of four: %v", got)
	}
}
