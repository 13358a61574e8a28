package targets

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// ConjurMapKey is the data key of a Kubernetes Secret that says which of its
// other keys come from which variables.
const ConjurMapKey = "conjur-map"

// DataKey is the data key under which a Kubernetes Secret holds a variable
// that no map names: its id, with a dot for each character that data keys
// cannot have, as the Secrets Provider does it. Not every id gives a key that
// Kubernetes takes.
func DataKey(variable string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("-._", r) || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' {
			return r
		}
		return '.'
	}, variable)
}

// DataKeyFault returns why a Secret's data cannot have a key; "" when it can.
func DataKeyFault(key string) string {
	switch {
	case key == "":
		return "is empty"
	case key == ConjurMapKey:
		return "is that of the map itself"
	case key != DataKey(key):
		return "has characters other than letters, digits, -, _ and ."
	case key == "." || strings.HasPrefix(key, ".."):
		return "is . or begins with .., which Kubernetes does not allow"
	case len(key) > validation.DNS1123SubdomainMaxLength:
		return fmt.Sprintf("is longer than %d bytes", validation.DNS1123SubdomainMaxLength)
	}
	return ""
}
