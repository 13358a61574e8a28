package targets

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// ManagedLabel is the label of the Secrets that Syncer fills if no names are given; its
// value is ManagedValue. Both come from the Secrets Provider's annotation reference.
const (
	ManagedLabel = "conjur.org/managed-by-provider"
	ManagedValue = "true"
)

// ConjurMapKey is the data key of a Kubernetes Secret that maps its other keys to
// variables.
const ConjurMapKey = "conjur-map"

// DataKey is the data key of a variable that no map names. It is the variable's id, with
// a dot for each character that a data key cannot contain, as in the Secrets Provider.
// Some ids result in a key that Kubernetes refuses.
func DataKey(variable string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("-._", r) || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' {
			return r
		}
		return '.'
	}, variable)
}

// DataKeyFault returns why a Secret's data cannot contain a key, or "".
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
