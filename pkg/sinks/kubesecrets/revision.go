package kubesecrets

import (
	"cmp"
	"strconv"
	"time"

	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/targets/records"
)

// revisionOf returns the revision of our part of a Secret, if its stamp has a number.
// Otherwise it returns the previous revision.
func revisionOf(r records.Record, stamp records.Stamp, ours map[string][]byte) records.Revision {
	if stamp.Number == "" {
		return r.Status.Revision
	}
	return records.Revision{Fingerprint: r.Fingerprint("", ours), Stamp: stamp}
}

func stampOf(annotations map[string]string) records.Stamp {
	return records.Stamp{
		Number:  annotations[targets.RevisionAnnotation],
		Revised: annotations[targets.RevisedAnnotation],
		Filled:  annotations[targets.FilledAnnotation],
	}
}

// nextStamp returns the stamp of a write that changes the data to ours. annotations are
// the Secret's current ones. first means that the Secret never held anything of ours.
func nextStamp(r records.Record, annotations map[string]string, ours map[string][]byte, first bool, now time.Time) records.Stamp {
	last := r.Status.Revision
	known := last.Stamp != (records.Stamp{})
	if first && known && last.Fingerprint == r.Fingerprint("", ours) {
		return last.Stamp
	}
	number := nextRevision(annotations[targets.RevisionAnnotation], now)
	next := records.Stamp{Number: number, Revised: now.UTC().Format(time.RFC3339)}
	if first && !known {
		next.Filled = number
	}
	return next
}

// setStamp adds the annotations of a stamp.
func setStamp(annotations map[string]string, s records.Stamp) {
	for name, value := range map[string]string{
		targets.RevisionAnnotation: s.Number, targets.RevisedAnnotation: s.Revised, targets.FilledAnnotation: s.Filled,
	} {
		if value != "" {
			annotations[name] = value
		}
	}
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

// noteRestarts adds the annotation that says which workloads need a restart for a write.
// It is part of that write, so that no crash can lose the restart. A Secret that was
// deleted gets its last annotation again.
func noteRestarts(annotations map[string]string, r records.Record, live map[string]string, next records.Stamp) {
	last := r.Status.Revision
	text, noted := live[targets.RestartsAnnotation]
	if !noted {
		text = last.Restarts
	}
	named := r.Spec.Secret.Restart
	previous := cmp.Or(live[targets.RevisionAnnotation], last.Stamp.Number)
	memos := targets.ParseRestartMemos(text)
	if next.Number != next.Filled && next.Number != previous {
		memos.Revised(named, previous, next.Number)
	}
	if noted || len(memos) > 0 {
		annotations[targets.RestartsAnnotation] = memos.String()
	}
}
