package notify

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/secretsync/syncer/pkg/targets"
)

// Revision says how often a Secret's data have changed, and when they last changed. It
// contains nothing derived from the data.
type Revision struct {
	Number int64
	At     time.Time
	// First means that nobody can have used the Secret before.
	First bool
	// Restarts says for which workloads the Secret needs no restart.
	Restarts targets.RestartMemos
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

// mostRestarts limits the restarts of a workload for one revision. The owner of a workload
// may revert each of them. A memo with one more is settled: the last revert was reported.
const mostRestarts = 3

// The consequences of a reverted restart.
const (
	repeated = "not all its Pods had been replaced, so it was restarted again"
	harmless = "its Pods are newer than the data"
	givenUp  = "some of its Pods are older than the data; restart it, and let the other client keep the annotations " + annotationDomain + annotationName + "…"
)

// need is what a revision needs from a workload.
type need struct {
	restart  bool
	memo     *targets.RestartMemo // to remember at the Secret, after the restart; nil: nothing
	reverted string               // the consequence, if another client reverted an earlier restart
}

// needs returns what the revision needs from a workload with this annotation. The Secret
// remembers the last revision that the workload has. Without that, the annotation does:
// earlier versions of Syncer kept nothing else. A Secret of which neither says anything
// was in use before it named the workload. hasOld reports whether Pods of the workload are
// as old as the revision.
func (r Revision) needs(w targets.Workload, annotation string, created time.Time, hasOld func() (bool, error)) (need, error) {
	number := strconv.FormatInt(r.Number, 10)
	memo, remembered := r.Restarts[w.String()]
	next := &targets.RestartMemo{Revision: number, Restarts: 1}
	switch {
	case annotation == number && remembered && memo.Revision != number:
		return need{memo: next}, nil // a process died between restart and memo
	case annotation == number:
		return need{}, nil
	case !remembered && annotation == "":
		return need{}, nil
	case !remembered:
		return need{restart: true, memo: next}, nil
	case memo.Revision != number && created.After(r.At):
		return need{}, nil
	case memo.Revision != number:
		return need{restart: true, memo: next}, nil
	case memo.Restarts == 0 || memo.Restarts > mostRestarts:
		return need{}, nil
	}
	old, err := hasOld()
	if err != nil {
		return need{}, err
	}
	if old && memo.Restarts < mostRestarts {
		next.Restarts = memo.Restarts + 1
		return need{restart: true, memo: next, reverted: repeated}, nil
	}
	next.Restarts = mostRestarts + 1
	if old {
		return need{memo: next, reverted: givenUp}, nil
	}
	return need{memo: next, reverted: harmless}, nil
}
