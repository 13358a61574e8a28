package brief_test

import (
	"fmt"

	"github.com/secretsync/syncer/internal/brief"
)

func ExampleSome() {
	fmt.Printf("%q\n", brief.Some([]string{"time-out", "time-out", "reset", "refused"}, 3))
	// Output: ["time-out" "reset" "and 1 more"]
}
