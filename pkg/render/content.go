package render

import (
	"encoding/base64"
	"fmt"

	"github.com/secretsync/syncer/pkg/targets"
)

// entry is an alias with the value that is to appear under it.
type entry struct {
	alias string
	value []byte
}

// values are decoded entries, and the buffers that decoding made.
type values struct {
	entries []entry
	own     [][]byte
}

// wipe clears the buffers; the entries must not be used any more.
func (v values) wipe() {
	for _, b := range v.own {
		clear(b)
	}
}

// decode applies the content types. As with the Secrets Provider, a value that
// is not base64 is used as it is, and a warning says so. Line breaks inside
// base64 text are allowed; NUL bytes at the end of what it stands for are
// kept.
func decode(entries []targets.Entry, items []Item) (v values, warnings []string) {
	v.entries = make([]entry, len(items))
	for i, item := range items {
		value := item.Value.Bytes()
		v.entries[i] = entry{alias: item.Alias, value: value}
		if entries[i].ContentType != targets.ContentBase64 {
			continue
		}
		decoded := make([]byte, base64.StdEncoding.DecodedLen(len(value)))
		v.own = append(v.own, decoded)
		n, err := base64.StdEncoding.Decode(decoded, value)
		if err != nil {
			warnings = append(warnings, fmt.Sprintf("alias %q: the value is not base64, so it is used as it is; store it as base64 or remove content-type", clip(item.Alias)))
			continue
		}
		v.entries[i].value = decoded[:n]
	}
	return v, warnings
}
