package records_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/targets/records"
)

// A Lane finds the targets that a variable is in.
func ExampleLane_ByVariable() {
	var lane records.Lane
	for _, group := range []string{"db", "web"} {
		lane.Put(&targets.Target{Key: targets.FileKey(group), Entries: []targets.Entry{
			{Alias: "token", Variable: "shared/token"}, {Alias: "own", Variable: group + "/own"},
		}})
	}
	fmt.Println(lane.ByVariable("shared/token"), lane.ByVariable("web/own"))
	// Output: [file/db file/web] [file/web]
}

// A trouble is logged when it begins, hourly, and when it ends.
func ExampleTrouble_After() {
	var trouble records.Trouble
	now := time.Now()
	for _, err := range []error{errors.New("no answer"), errors.New("no answer"), nil, nil} {
		var log bool
		trouble, log = trouble.After(err, now)
		fmt.Println(err, log)
	}
	// Output:
	// no answer true
	// no answer false
	// <nil> true
	// <nil> false
}
