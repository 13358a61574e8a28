package page_test

import (
	"context"
	"fmt"
	"net/http/httptest"

	"github.com/secretsync/syncer/pkg/page"
)

func ExampleClient_Get() {
	server := httptest.NewServer(&page.Handler{Look: func() page.Status {
		return page.Status{Mode: "sidecar", Targets: []page.Target{{Name: "file/db", State: page.Stale, Waits: "a poll of Conjur that succeeds"}}}
	}})
	defer server.Close()
	status, err := page.Client{URL: server.URL}.Get(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, t := range status.Targets {
		fmt.Println(t.Name, "is", t.State, "and waits for", t.Waits)
	}
	// Output: file/db is stale and waits for a poll of Conjur that succeeds
}
