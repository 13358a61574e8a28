package definitions_test

import (
	"fmt"

	"github.com/secretsync/syncer/pkg/targets/definitions"
)

// The list of a secret group: each entry is an alias and a variable.
func ExampleParseEntries() {
	entries, _, err := definitions.ParseEntries("- user: apps/shop/db-user\n- apps/shop/db-password\n", "acct")
	for _, e := range entries {
		fmt.Println(e.Alias, e.Variable)
	}
	fmt.Println(err)
	// Output:
	// user apps/shop/db-user
	// db-password apps/shop/db-password
	// <nil>
}

func ExampleFilePath() {
	path, err := definitions.FilePath("", "config/db.env", "db.env")
	fmt.Println(path, err)
	_, err = definitions.FilePath("", "../etc/passwd", "passwd")
	fmt.Println(err != nil)
	// Output:
	// config/db.env <nil>
	// true
}
