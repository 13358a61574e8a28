package config

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/secretsync/syncer/pkg/render"
	"github.com/secretsync/syncer/pkg/rotation/versions"
	"github.com/secretsync/syncer/pkg/secret"
)

// published reads the variables that follow the primary.
func (l *loader) published(it item, set *RotatedSet) {
	val := it["publish"]
	for i, id := range val.keys {
		p := val.items[i]
		switch {
		case p["text"].set == p["parts"].set:
			l.fail(fmt.Sprintf("%s.%s", val.key, id), "name a part or write a template, or list parts; one of the two")
		case p["parts"].set && len(p["parts"].texts()) == 0:
			l.fail(fmt.Sprintf("%s.%s", val.key, id), "the list is empty; name a part")
		}
		if set.Publish == nil {
			set.Publish = map[string]render.Published{}
		}
		set.Publish[id] = render.Published{Text: p["text"].text, Parts: p["parts"].texts()}
		if err := set.Publish[id].Check(set.sample(it["adopt"].keys)); err != nil && !bad(p) && !bad(it["generate"].object()) {
			l.failAll(fmt.Sprintf("%s.%s", val.key, id), err)
		}
	}
}

// sample returns a version like those of the set, with other bytes. It has no parts if
// only the outside system determines them.
func (s RotatedSet) sample(adopted []string) (v versions.Version) {
	if s.HTTP != nil || s.Exec != nil {
		return v
	}
	names := append(s.Generate.PartNames(), adopted...)
	switch {
	case s.PostgreSQL != nil:
		names = append(names, "username")
	case s.APIKeys != nil:
		names = append(names, "login", "apiKey")
	default:
		_, adopted, others := s.clouds()
		names = slices.Concat(names, adopted, others)
	}
	if len(names) == 0 { // reported already
		return v
	}
	v.Parts = map[string]secret.Value{}
	for _, name := range names {
		v.Parts[name] = secret.New(bytes.Repeat([]byte("x"), longPart))
	}
	return v
}

// longPart is the length in bytes of a sample part. It is long enough for a template to
// take any of the bytes.
const longPart = 4 << 10
