package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestAWSLibraryLogsNothingItself: a metadata service that refuses is named in
// the log, and nothing goes past the log to standard error.
func TestAWSLibraryLogsNothingItself(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Group("db", "json", "db/password")
	metadata := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }))
	t.Cleanup(metadata.Close)
	delete(w.Env, "CONJUR_AUTHN_API_KEY")
	w.Env["CONJUR_AUTHN_URL"] = w.Server.URL + "/authn-iam/prod"
	w.Env["AWS_EC2_METADATA_SERVICE_ENDPOINT"], w.Env["AWS_REGION"] = metadata.URL, "eu-central-1"
	w.Env["HOME"] = w.Path("tmp")
	p := w.start()
	eventually(t, "a word about it", func() bool { return len(p.Lines("AWS's credentials", "403")) > 0 })
	p.Stop()
	for line := range strings.Lines(p.Log()) {
		if !strings.HasPrefix(line, "20") { // the year
			t.Errorf("not a line of the log: %s", line)
		}
	}
}
