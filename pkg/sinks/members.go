package sinks

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"

	"github.com/secretsync/syncer/pkg/safefile"
	"github.com/secretsync/syncer/pkg/targets"
)

// Members are remembered where the content itself is, so that they are there as
// long as it is: of a file in one beside it, of a folder of files in one in it,
// and of a Secret in an annotation.

// memo is the file that has the members of a target.
type memo struct {
	of  string // the target's name
	how manner
}

// name is short enough whatever the target's name, and none of a target or a
// temporary file.
func (m memo) name() string {
	sum := sha256.Sum256([]byte(m.of))
	return safefile.TempPrefix + "variables-" + hex.EncodeToString(sum[:16])
}

// read returns the members. A memo that cannot be read has none: the folder is
// the application's too.
func (m memo) read(dir folder) []string {
	info, err := dir.lstat(m.name())
	if err != nil || !info.Mode().IsRegular() {
		return nil
	}
	text, whole, err := content(dir, m.name(), info, MaxSize)
	if err != nil || !whole {
		return nil
	}
	return decodeMembers(text.Bytes())
}

// write writes the memo, if it is not right already; one without members is
// removed.
func (m memo) write(dir folder, ids []string) error {
	info, err := dir.lstat(m.name())
	switch {
	case len(ids) > 0 && slices.Equal(ids, m.read(dir)):
		return nil
	case len(ids) > 0:
		_, err = replace(dir, m.name(), encodeMembers(ids), m.how)
	case err == nil && !info.IsDir():
		err = dir.remove(m.name())
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return step("record the variables in "+m.name(), err)
}

// around makes a change of the content between two of the memo: a crash leaves
// too many members, never too few. With nil nothing is to be remembered anew.
func (m memo) around(dir folder, ids []string, change func() error) error {
	if ids == nil {
		return change()
	}
	both := slices.Concat(m.read(dir), ids)
	slices.Sort(both)
	if err := m.write(dir, slices.Compact(both)); err != nil {
		return err
	}
	if err := change(); err != nil {
		return err
	}
	return m.write(dir, ids)
}

// mostMembers bounds the ids of one Secret, in bytes, as the size of a Secret
// bounds those in its map: whoever may write it may pack any number.
const mostMembers = 2 << 20

// membersOf reads the annotation, if it is ours.
func membersOf(live *corev1.Secret, owned fieldTree) []string {
	if !owned.has("metadata", "annotations", targets.MembersAnnotation) {
		return nil
	}
	packed := base64.NewDecoder(base64.StdEncoding, bytes.NewBufferString(live.Annotations[targets.MembersAnnotation]))
	unpacked, err := gzip.NewReader(packed)
	if err != nil {
		return nil
	}
	text, err := io.ReadAll(io.LimitReader(unpacked, mostMembers+1))
	if err != nil || len(text) > mostMembers {
		return nil
	}
	return decodeMembers(text)
}

// membersAnnotation is what a Secret is to have for the members. It is packed,
// since Kubernetes bounds annotations.
func membersAnnotation(ids []string) map[string]string {
	if len(ids) == 0 {
		return nil
	}
	var packed bytes.Buffer
	w, _ := gzip.NewWriterLevel(&packed, gzip.BestCompression) // the level is one
	_, err := w.Write(encodeMembers(ids))
	if err = errors.Join(err, w.Close()); err != nil {
		panic(err) // a buffer takes everything
	}
	return map[string]string{targets.MembersAnnotation: base64.StdEncoding.EncodeToString(packed.Bytes())}
}

// membersFault says why a Secret cannot have the members; "" when it can.
func (e *secretEdit) membersFault(live *corev1.Secret) string {
	size := 0
	for key, value := range live.Annotations {
		if key != targets.MembersAnnotation {
			size += len(key) + len(value)
		}
	}
	for key, value := range membersAnnotation(e.members) {
		size += len(key) + len(value)
	}
	if e.members == nil || size <= validation.TotalAnnotationSizeLimitB && len(encodeMembers(e.members)) <= mostMembers {
		return ""
	}
	return fmt.Sprintf("the ids of the %d variables that a wildcard brings in do not fit its annotations; divide them among several Secrets by prefix/*", len(e.members))
}

func encodeMembers(ids []string) []byte {
	text, err := json.Marshal(ids)
	if err != nil {
		panic(err) // strings always encode
	}
	return text
}

// decodeMembers returns nil for what encodeMembers has not made.
func decodeMembers(text []byte) (ids []string) {
	if json.Unmarshal(text, &ids) != nil {
		return nil
	}
	return ids
}
