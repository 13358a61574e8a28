package kubesecrets

import (
	"maps"
	"strconv"
	"time"

	"github.com/secretsync/syncer/pkg/records"
	"github.com/secretsync/syncer/pkg/targets"
)

// revisionOf is what a Secret holds of ours, if its annotations name a
// revision; otherwise what was known before.
func revisionOf(r records.Record, annotations map[string]string, ours map[string][]byte) records.Revision {
	if annotations[targets.RevisionAnnotation] == "" {
		return r.Status.Revision
	}
	ofRevision := map[string]bool{targets.RevisionAnnotation: true, targets.RevisedAnnotation: true, targets.FilledAnnotation: true}
	now := records.Revision{Print: r.Print("", ours), Annotations: among(annotations, ofRevision, false)}
	if before := r.Status.Revision; now.Print == before.Print && maps.Equal(now.Annotations, before.Annotations) {
		return before // one copy in memory
	}
	return now
}

// nextAnnotations are those of a write that changes the data of a Secret, that
// has some already, to what is ours then. first: nothing of ours is in it, or
// ever was since it was made.
func nextAnnotations(r records.Record, annotations map[string]string, ours map[string][]byte, first bool, now time.Time) map[string]string {
	last := r.Status.Revision
	known := last.Annotations != nil
	if first && known && last.Print == r.Print("", ours) {
		return last.Annotations
	}
	number := nextRevision(annotations[targets.RevisionAnnotation], now)
	next := map[string]string{targets.RevisionAnnotation: number, targets.RevisedAnnotation: now.UTC().Format(time.RFC3339)}
	if first && !known {
		next[targets.FilledAnnotation] = number
	}
	return next
}

// nextRevision is greater than current, and than what a Secret of that name,
// deleted since, had reached, as long as clocks go forward.
func nextRevision(current string, now time.Time) string {
	n, err := strconv.ParseInt(current, 10, 64)
	if err != nil {
		n = 0
	}
	return strconv.FormatInt(max(n+1, now.UnixMilli()), 10)
}
