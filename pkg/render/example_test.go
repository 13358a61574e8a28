package render_test

import (
	"fmt"

	"github.com/secretsync/syncer/pkg/render"
	"github.com/secretsync/syncer/pkg/secret"
	"github.com/secretsync/syncer/pkg/targets"
)

// A template is given the values of its entries.
func ExampleRender() {
	t := &targets.Target{Format: targets.FormatTemplate, Group: "db", Entries: []targets.Entry{{Alias: "user", Variable: "db/user"}}}
	result, err := render.Render(t, "url = postgres://{{ secret \"user\" }}@db/shop\n", []render.Item{
		{Alias: "user", Value: secret.New([]byte("shop"))},
	})
	fmt.Printf("%s%v", result.Parts[""].Bytes(), err)
	// Output:
	// url = postgres://shop@db/shop
	// <nil>
}
