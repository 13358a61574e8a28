package kubesecrets

import (
	"maps"
	"strconv"
	"time"

	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/targets/records"
)

// revisionOf returns the revision of our part of a Secret, if its annotations name
// one. Otherwise it returns the previous revision.
func revisionOf(r records.Record, annotations map[string]string, ours map[string][]byte) records.Revision {
	if annotations[targets.RevisionAnnotation] == "" {
		return r.Status.Revision
	}
	now := records.Revision{Print: r.Print("", ours), Annotations: annotationsOfRevision(annotations)}
	if before := r.Status.Revision; now.Print == before.Print && maps.Equal(now.Annotations, before.Annotations) {
		return before // share one copy in memory
	}
	return now
}

func annotationsOfRevision(annotations map[string]string) map[string]string {
	return among(annotations, map[string]bool{targets.RevisionAnnotation: true, targets.RevisedAnnotation: true, targets.FilledAnnotation: true}, false)
}

// nextAnnotations returns the annotations of a write that changes the data to ours.
// annotations are the Secret's current ones. first means that the Secret never held
// anything of ours.
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

// nextRevision returns a revision greater than current. As long as clocks do not go
// backward, it also exceeds the revisions of a deleted Secret with the same name.
func nextRevision(current string, now time.Time) string {
	n, err := strconv.ParseInt(current, 10, 64)
	if err != nil {
		n = 0
	}
	return strconv.FormatInt(max(n+1, now.UnixMilli()), 10)
}
