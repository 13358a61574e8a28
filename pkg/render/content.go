package render

import (
	"encoding/base64"
	"fmt"
	"time"

	"github.com/secretsync/syncer/internal/brief"
	"github.com/secretsync/syncer/pkg/rotation/versions"
	"github.com/secretsync/syncer/pkg/secret"
	"github.com/secretsync/syncer/pkg/targets"
)

// entry is an alias with the value to write under it.
type entry struct {
	alias string
	value []byte
	set   *versions.Document // for an entry that is a set
	from  string             // the variable of the set that made it; "": none
}

// values holds decoded entries, and the buffers of the decoding.
type values struct {
	entries []entry
	own     [][]byte
	expires targets.Expiry
}

// wipe clears the buffers. The entries must not be used afterwards.
func (v values) wipe() {
	for _, b := range v.own {
		clear(b)
	}
}

// size returns the total bytes of all values, because many entries may share one
// value.
func (v values) size() (size int) {
	for _, e := range v.entries {
		size += len(e.value)
	}
	return size
}

// decode applies the content types. Like the Secrets Provider, it uses a value that
// is not base64 unchanged, and returns a warning. Base64 text may contain line
// breaks. NUL bytes at the end of the decoded value are kept.
//
// In a folder format, a set becomes a file, or a data key, for each part. In other
// formats it stays one entry.
func decode(format targets.Format, entries []targets.Entry, items []Item) (v values, warnings []string, err error) {
	v.entries = make([]entry, 0, len(items))
	for i, item := range items {
		value := item.Value.Bytes()
		if entries[i].IsSet() {
			if err := v.addSet(format, entries[i], value); err != nil {
				return v, nil, err
			}
			continue
		}
		if entries[i].ContentType == targets.ContentBase64 {
			decoded := make([]byte, base64.StdEncoding.DecodedLen(len(value)))
			v.own = append(v.own, decoded)
			if n, err := base64.StdEncoding.Decode(decoded, value); err == nil {
				value = decoded[:n]
			} else {
				warnings = append(warnings, fmt.Sprintf("alias %q: the value is not base64, so it is used as it is; store it as base64 or remove content-type", brief.Input(item.Alias)))
			}
		}
		name := item.Alias
		if format == targets.FormatDirectory {
			name = entries[i].FilePath()
		}
		v.entries = append(v.entries, entry{alias: name, value: value})
		v.expire(entries[i].Variable, secret.Expires(value))
	}
	return v, warnings, v.twice(entries)
}

// expire records the earliest expiry of a variable's certificates. Zero means no
// certificate.
func (v *values) expire(variable string, at time.Time) {
	v.expires = v.expires.First(targets.Expiry{At: at, Variable: variable})
}
