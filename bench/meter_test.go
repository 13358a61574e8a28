package main

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/secretsync/syncer/pkg/conjurd"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestMeterCountsRequestsAndConnections(t *testing.T) {
	var m meter
	server, err := conjurd.ServeLoopback(m.handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("If-None-Match") != "":
			w.WriteHeader(http.StatusNotModified)
		case r.URL.Path != "/silent":
			_, _ = io.WriteString(w, "0123456789")
		}
	})), m.accepted)
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(server.CA)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
	defer client.CloseIdleConnections()
	send := func(method, path, etag string) {
		t.Helper()
		req, err := http.NewRequest(method, server.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if etag != "" {
			req.Header.Set("If-None-Match", etag)
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			t.Fatal(err)
		}
		if err := resp.Body.Close(); err != nil {
			t.Fatal(err)
		}
	}
	send("POST", "/authn-jwt/bench/bench/authenticate", "")
	send("GET", "/whoami", "")
	send("GET", "/secrets?variable_ids=a", "")
	before := m.read()
	send("GET", "/secrets?variable_ids=a", `"tag"`)
	client.CloseIdleConnections()
	send("GET", "/secrets/bench/variable/a", "")

	if got, want := before, (counts{data: 1, dataBytes: 10, authentications: 1, connections: 1, refreshes: 1}); got != want {
		t.Errorf("counted %+v, want %+v", got, want)
	}
	if got, want := m.read().minus(before), (counts{data: 2, dataBytes: 10, connections: 1}); got != want {
		t.Errorf("then counted %+v, want %+v", got, want)
	}
}

func TestMeterTellsRefreshesByTheTimeBetweenThem(t *testing.T) {
	var m meter
	now := time.Now()
	at := func(offset time.Duration) time.Time { return now.Add(offset) }

	m.begin(at(0))
	m.begin(at(interval)) // beside the first, however long that takes
	m.end(at(interval), 0)
	if q := m.quiet(at(2 * interval)); q != 0 {
		t.Errorf("quiet for %s while a read goes on", q)
	}
	m.end(at(2*interval), 0)
	m.begin(at(2*interval + interval/2 - 1))
	m.end(at(3*interval), 0)
	if n := m.read().refreshes; n != 1 {
		t.Errorf("%d refreshes in one burst", n)
	}
	m.begin(at(3*interval + interval/2))
	m.end(at(4*interval), 0)
	if n := m.read().refreshes; n != 2 {
		t.Errorf("%d refreshes in two bursts", n)
	}
	if q := m.quiet(at(5 * interval)); q != interval {
		t.Errorf("quiet for %s, want %s", q, interval)
	}
}

func TestBareClientPacksRequestLines(t *testing.T) {
	job := bareJob{URL: "https://127.0.0.1:1", Account: account}
	large := profiles()[1]
	for i := range large.count() {
		job.Variables = append(job.Variables, large.variable(i))
	}
	chunks := job.chunks()
	if len(chunks) < 2 || len(chunks) > 10 {
		t.Errorf("%d requests", len(chunks))
	}
	ids := 0
	for _, ch := range chunks {
		if len(ch.url) > bareRequestLine {
			t.Errorf("a request line of %d", len(ch.url))
		}
		ids += strings.Count(ch.url, ":variable:")
	}
	if ids != large.count() {
		t.Errorf("%d of %d variables", ids, large.count())
	}
}

func TestStatusMiB(t *testing.T) {
	const status = "Name:\tsyncer\nVmHWM:\t   20480 kB\nRssAnon:\t    1536 kB\nThreads:\t7\n"
	for field, want := range map[string]float64{"VmHWM": 20, "RssAnon": 1.5, "VmRSS": 0} {
		if got := statusMiB(status, field); got != want {
			t.Errorf("%s: %v MiB, want %v", field, got, want)
		}
	}
}
