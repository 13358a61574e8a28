package status_test

import (
	"context"
	"fmt"
	"net/http/httptest"

	"github.com/secretsync/syncer/pkg/health/status"
)

func ExampleClient_Get() {
	server := httptest.NewServer(&status.Handler{Look: func() status.Status {
		return status.Status{Mode: "sidecar", Targets: []status.Target{{Name: "file/db", State: status.Stale, Waits: "a poll of Conjur that succeeds"}}}
	}})
	defer server.Close()
	status, err := status.Client{URL: server.URL}.Get(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, t := range status.Targets {
		fmt.Println(t.Name, "is", t.State, "and waits for", t.Waits)
	}
	// Output: file/db is stale and waits for a poll of Conjur that succeeds
}
