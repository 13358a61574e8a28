package notify

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// Revision says how often a Secret's data have changed, and when they last changed. It
// contains nothing derived from the data.
type Revision struct {
	Number int64
	At     time.Time
	// First means that nobody can have used the Secret before.
	First bool
}

// ParseRevision parses a revision from two annotations of a Secret: a decimal number, and
// a time in RFC 3339.
func ParseRevision(number, at string) (Revision, error) {
	n, badNumber := strconv.ParseInt(number, 10, 64)
	when, badTime := time.Parse(time.RFC3339, at)
	if err := errors.Join(badNumber, badTime); err != nil {
		return Revision{}, fmt.Errorf("revision of the Secret: %w", err)
	}
	return Revision{Number: n, At: when}, nil
}

// Annotation names have at most 63 characters after the slash.
const (
	annotationDomain = "conjur.org/"
	annotationName   = "secret-revision."
	longestName      = 63 - len(annotationName)
	digestLength     = 10
)

// TemplateAnnotation returns the name of an annotation of a workload's Pod template. It
// holds the number of the last revision of a Secret for which the Pods were restarted. A
// name that is too long is cut and gets a digest of the whole name.
func TemplateAnnotation(secret string) string {
	if len(secret) > longestName {
		digest := sha256.Sum256([]byte(secret))
		secret = secret[:longestName-digestLength-1] + "-" + hex.EncodeToString(digest[:])[:digestLength]
	}
	return annotationDomain + annotationName + secret
}

// current reports whether a workload's Pods have the revision or a later one. That is so
// if their template says so, or if they cannot have started before the revision. The Pods
// waited for the first revision.
func (r Revision) current(annotation string, created time.Time) bool {
	if annotation != "" {
		return annotation == strconv.FormatInt(r.Number, 10)
	}
	return r.First || created.After(r.At)
}
