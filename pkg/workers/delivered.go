package workers

import (
	"fmt"
	"io/fs"

	"go.uber.org/zap"

	"github.com/secretsync/syncer/internal/fingerprint"
	"github.com/secretsync/syncer/pkg/sinks"
	"github.com/secretsync/syncer/pkg/targets/records"
)

// A target's status keeps the fingerprint of the last delivered content. The fingerprint
// distinguishes content that somebody deleted from content that is new.

// remember notes the content that a target holds now. It reports whether an earlier
// change that seemed to fail did happen, and therefore still needs reporting.
func remember(r *job, want Want) (late bool) {
	switch {
	case want.Gone == nil:
		return delivered(&r.Status, fingerprintOf(r, want))
	case want.Gone.Kept:
		return false
	}
	late = r.Status.RemovalFailed
	setKnown(&r.Status, fingerprint.Fingerprint{})
	return late
}

// delivered notes that a target holds the wanted content.
func delivered(s *records.Status, now fingerprint.Fingerprint) (late bool) {
	late = (s.WriteFailed || s.RemovalFailed) && s.Delivered != now
	setKnown(s, now)
	return late
}

// setKnown notes that the target's content is known. The zero Fingerprint means that the target is
// empty on purpose.
func setKnown(s *records.Status, now fingerprint.Fingerprint) {
	s.Delivered, s.WriteFailed, s.RemovalFailed, s.Asked = now, false, false, false
}

// setUnknown notes that the target's content is not known.
func setUnknown(s *records.Status, removal bool) {
	s.WriteFailed, s.RemovalFailed = s.WriteFailed || !removal, s.RemovalFailed || removal
	s.Content = nil
}

// deleted reports whether a target is as it was last delivered, except that some or all
// of it is missing. It also reports whether the missing content stays away because of
// that. A folder of files counts as deleted only if the whole folder is gone; otherwise
// missing files are restored.
func (s *Syncer) deleted(r *job, want Want, have sinks.State) (deleted, stays bool) {
	if want.Gone != nil {
		return false, false
	}
	status := &r.Status
	deleted = status.Delivered == fingerprintOf(r, want) && !status.WriteFailed && !status.RemovalFailed
	for name, part := range have.Parts {
		there, ok := want.Parts[name]
		deleted = deleted && ok && part.Equal(there) && have.Mode == want.Mode
	}
	stays = deleted && !status.Asked && s.Policy.KeepDeleted && r.Spec.Secret == nil && len(have.Parts) == 0
	if stays {
		s.Log.Info("Not restoring a deleted file, because its values have not changed", zap.String("target", string(r.Spec.Key)))
	}
	return deleted, stays
}

// fingerprintOf returns the fingerprint that distinguishes the wanted content from all
// earlier wanted content.
func fingerprintOf(r *job, want Want) fingerprint.Fingerprint {
	parts := make(map[string][]byte, len(want.Parts))
	for name, value := range want.Parts {
		parts[name] = value.Bytes()
	}
	head := fmt.Sprintf("%o %s", want.Mode&fs.ModePerm, r.Spec.File.Path)
	for _, e := range r.Spec.Entries {
		if e.Mode != 0 {
			head += fmt.Sprintf(" %o %q", e.Mode, e.FilePath())
		}
	}
	return r.Fingerprint(head, parts)
}
