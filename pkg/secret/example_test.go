package secret_test

import (
	"fmt"

	"github.com/secretsync/syncer/pkg/secret"
)

// A Value does not print what it holds, whatever the verb.
func ExampleValue() {
	v := secret.New([]byte("s3cret"))
	defer v.Wipe()
	fmt.Printf("%v %q %d\n", v, struct{ Password secret.Value }{v}, v.Len())
	// Output: [secret] {[secret]} 6
}
