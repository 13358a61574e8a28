package targets_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/secretsync/syncer/pkg/targets"
)

// The list of a secret group: each entry is an alias and a variable.
func ExampleParseEntries() {
	entries, _, err := targets.ParseEntries("- user: apps/shop/db-user\n- apps/shop/db-password\n", "acct")
	for _, e := range entries {
		fmt.Println(e.Alias, e.Variable)
	}
	fmt.Println(err)
	// Output:
	// user apps/shop/db-user
	// db-password apps/shop/db-password
	// <nil>
}

// A Lane finds the targets that a variable is in.
func ExampleLane_ByVariable() {
	var lane targets.Lane
	for _, group := range []string{"db", "web"} {
		lane.Put(&targets.Target{Key: targets.FileKey(group), Entries: []targets.Entry{
			{Alias: "token", Variable: "shared/token"}, {Alias: "own", Variable: group + "/own"},
		}})
	}
	fmt.Println(lane.ByVariable("shared/token"), lane.ByVariable("web/own"))
	// Output: [file/db file/web] [file/web]
}

// A trouble is logged when it begins, hourly, and when it ends.
func ExampleTrouble_Met() {
	var trouble targets.Trouble
	now := time.Now()
	for _, err := range []error{errors.New("no answer"), errors.New("no answer"), nil, nil} {
		var log bool
		trouble, log = trouble.Met(err, now)
		fmt.Println(err, log)
	}
	// Output:
	// no answer true
	// no answer false
	// <nil> true
	// <nil> false
}

func ExampleFilePath() {
	path, err := targets.FilePath("", "config/db.env", "db.env")
	fmt.Println(path, err)
	_, err = targets.FilePath("", "../etc/passwd", "passwd")
	fmt.Println(err != nil)
	// Output:
	// config/db.env <nil>
	// true
}
