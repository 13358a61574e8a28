package actuators

import (
	"fmt"
	"slices"

	"github.com/secretsync/syncer/pkg/rotation/versions"
)

// turn returns the first name that no version has in that part. Retired versions have no
// parts. The error means that all names are in use.
func turn(doc *versions.Document, part string, names []string) (string, error) {
	var taken []string
	for _, v := range doc.Versions {
		if v.State != versions.Retired {
			taken = append(taken, string(v.Parts[part].Bytes()))
		}
	}
	for _, name := range names {
		if !slices.Contains(taken, name) {
			return name, nil
		}
	}
	return "", fmt.Errorf("no user or host is free, because each has a version that is still valid: %q", taken)
}
