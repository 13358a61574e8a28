package conjur

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/secretsync/syncer/internal/lazyregexp"
	"github.com/secretsync/syncer/pkg/secret"
)

var (
	errNotBatch  = errors.New("the answer is not a JSON object of values")
	errEncoding  = errors.New("the answer has an unknown Content-Encoding")
	errNotBase64 = errors.New("the value in the answer is not base64")
	errLacking   = errors.New("the answer lacks the variable")
	errAmbiguous = errors.New("the answer lost its Content-Encoding on the way: the values may or may not be base64")
	errEmpty     = errors.New("the value in the answer is empty, which no variable can be")
)

// decodeBatch reads the body of a batch, {"account:variable:id":"value"}. With
// Content-Encoding "base64" the values are base64 with line breaks. It returns a
// value or an error for each of the ids, and ignores all other keys. The last error
// applies to all ids. decodeBatch overwrites the body.
func decodeBatch(header http.Header, body []byte, ids []string, prefix string) (map[string]secret.Value, map[string]error, error) {
	defer clear(body)
	encoded := false
	switch e := strings.ToLower(header.Get("Content-Encoding")); e {
	case "", "identity":
	case "base64":
		encoded = true
	default:
		return nil, nil, errEncoding
	}
	raw := make(map[string][]byte, len(ids)) // slices of the body itself
	for _, id := range ids {
		raw[prefix+id] = nil
	}
	if !pick(body, raw) {
		return nil, nil, errNotBatch
	}
	values, bad := make(map[string]secret.Value, len(ids)), map[string]error{}
	for _, id := range ids {
		r := raw[prefix+id]
		if r == nil {
			bad[id] = &VariableError{id, errLacking}
			continue
		}
		b, err := decodeValue(r, encoded)
		if err == nil && len(b) == 0 {
			err = errEmpty
		}
		if err != nil {
			bad[id] = &VariableError{id, err}
			continue
		}
		values[id] = secret.New(b)
	}
	if !encoded && allWrapped(values) {
		secret.Wipe(values)
		return nil, nil, errAmbiguous
	}
	return values, bad, nil
}

// pick sets each of the members to its slice of the body, a JSON object. It returns
// false if the body is not an object. The last of several equal keys counts.
// encoding/json is unsuitable: it copies all members, and a body may have millions
// of small ones.
func pick(body []byte, members map[string][]byte) bool {
	rest := bytes.TrimLeft(body, jsonSpace)
	if !json.Valid(body) || rest[0] != '{' {
		return false
	}
	for rest = rest[1:]; ; {
		rest = bytes.TrimLeft(rest, jsonSpace+",")
		if rest[0] == '}' {
			return true
		}
		n := valueLength(rest)
		key := rest[:n]
		rest = bytes.TrimLeft(rest[n:], jsonSpace+":")
		n = valueLength(rest)
		if name := key[1 : len(key)-1]; bytes.IndexByte(name, '\\') >= 0 {
			var unescaped string
			_ = json.Unmarshal(key, &unescaped) // it is valid
			key = []byte(unescaped)
		} else {
			key = name
		}
		if _, wanted := members[string(key)]; wanted {
			members[string(key)] = rest[:n]
		}
		rest = rest[n:]
	}
}

const jsonSpace = " \t\r\n"

// valueLength returns the length of the value at the start of valid JSON.
func valueLength(text []byte) int {
	depth := 0
	for i := 0; ; i++ {
		switch text[i] {
		case '"':
			for i++; text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
			if depth == 0 {
				return i + 1
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 { // the end of the enclosing object or array
				return i
			}
			if depth--; depth == 0 {
				return i + 1
			}
		case ',':
			if depth == 0 {
				return i
			}
		}
	}
}

// allWrapped reports whether all values look like the server's base64, which ends
// in a line break.
func allWrapped(values map[string]secret.Value) bool {
	for _, v := range values {
		b := v.Bytes()
		decoded, err := base64.StdEncoding.DecodeString(string(b))
		clear(decoded)
		if err != nil || b[len(b)-1] != '\n' {
			return false
		}
	}
	return len(values) > 0
}

// decodeValue decodes one JSON string.
func decodeValue(raw []byte, encoded bool) ([]byte, error) {
	if len(raw) < 2 || raw[0] != '"' {
		return nil, errNotBatch
	}
	if !encoded {
		var s string
		if json.Unmarshal(raw, &s) != nil {
			return nil, errNotBatch
		}
		return []byte(s), nil
	}
	// Base64 needs only the JSON escapes of line breaks and slashes. Remove them in
	// place, to avoid further copies.
	text, out := raw[1:len(raw)-1], raw[:0]
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' {
			out = append(out, text[i])
			continue
		}
		i++
		switch {
		case i == len(text):
			return nil, errNotBase64
		case text[i] == '/':
			out = append(out, '/')
		case text[i] != 'n' && text[i] != 'r':
			return nil, errNotBase64
		}
	}
	value := make([]byte, base64.StdEncoding.DecodedLen(len(out)))
	n, err := base64.StdEncoding.Decode(value, out)
	if err != nil {
		clear(value)
		return nil, errNotBase64
	}
	return value[:n], nil
}

// genuineMissing returns the variable that a 404 in the server's format calls empty
// or missing. It returns false for a body in another format, such as a proxy's.
// Reads of one variable and of many use the same format.
func genuineMissing(header http.Header, body []byte, account string) (id string, ok bool) {
	if !isJSON(header) {
		return "", false
	}
	var answer struct {
		Error struct{ Code, Message string }
	}
	if json.Unmarshal(body, &answer) != nil || answer.Error.Code != "not_found" {
		return "", false
	}
	id, ok = strings.CutPrefix(answer.Error.Message, "CONJ00076E Variable "+account+":variable:")
	if !ok {
		return "", false
	}
	return strings.CutSuffix(id, " is empty or not found.")
}

// alsoMissing returns the further variables that a 404 in genuineMissing's format
// names. The embedded server names all variables that prevent the batch. They are
// hints for the next requests, and prove nothing.
func alsoMissing(body []byte, account string) (ids []string) {
	var answer struct {
		Error struct{ Details struct{ Variables []string } }
	}
	if json.Unmarshal(body, &answer) != nil {
		return nil
	}
	for _, full := range answer.Error.Details.Variables {
		if id, ok := strings.CutPrefix(full, account+":variable:"); ok {
			ids = append(ids, id)
		}
	}
	return ids
}

func isJSON(header http.Header) bool {
	t, _, err := mime.ParseMediaType(header.Get("Content-Type"))
	return err == nil && (t == "application/json" || strings.HasSuffix(t, "+json"))
}

// longestName bounds the part of a user's name that is kept.
const longestName = 200

// decodeWhoami reads the answer of /whoami. The results are empty if it names
// nobody.
func decodeWhoami(body []byte) (account, user string) {
	var answer struct{ Account, Username string }
	if json.Unmarshal(body, &answer) != nil || answer.Username == "" {
		return "", ""
	}
	return answer.Account, answer.Username[:min(len(answer.Username), longestName)]
}

// decodeResource reads the answer about a resource. It returns false unless the
// answer is about the resource with the full id.
func decodeResource(r *reply, full string) (Resource, bool) {
	var answer struct {
		ID          string
		Permissions []Permission
		Annotations annotations
		Secrets     []struct {
			Version   uint64
			ExpiresAt *string `json:"expires_at"`
		}
	}
	ok := r.status == http.StatusOK && isJSON(r.header) && json.Unmarshal(r.body, &answer) == nil && answer.ID == full
	about := Resource{Permissions: answer.Permissions, Annotations: map[string]string{}}
	for _, a := range answer.Annotations {
		about.Annotations[a.Name] = a.Value
	}
	for _, s := range answer.Secrets {
		if s.Version >= about.Newest {
			about.Newest, about.Expires = s.Version, s.ExpiresAt != nil
		}
	}
	return about, ok
}

// annotations bounds the annotations that are read of one resource.
type annotations [64]struct{ Name, Value string }

// listed holds the fields that are read of each resource in a list.
type listed struct {
	ID          string
	Owner       string
	Permissions *[]Permission
	Secrets     *[]struct{}
	Annotations annotations
}

// readers returns the value of Page.Readers; "" if the server does not tell.
func (l *listed) readers() string {
	if l.Permissions == nil || l.Owner == "" {
		return ""
	}
	roles := []string{l.Owner}
	for _, p := range *l.Permissions {
		if p.Privilege == Execute {
			roles = append(roles, p.Role)
		}
	}
	slices.Sort(roles[1:])
	return strings.Join(slices.Compact(roles), "\n")
}

// decodeList reads a JSON list of at most most resources. All ids must begin with
// prefix.
func decodeList(header http.Header, body []byte, prefix string, most int) (Page, error) {
	errNotList := errors.New("the answer is not a JSON list of resources")
	dec := json.NewDecoder(bytes.NewReader(body))
	if begin, err := dec.Token(); !isJSON(header) || err != nil || begin != json.Delim('[') {
		return Page{}, errNotList
	}
	page := Page{Unset: map[string]bool{}, Readers: map[string]string{}}
	shared := map[string]string{} // most variables have the readers of many others
	var resource listed           // reused, because it is large
	for dec.More() {
		resource = listed{}
		if dec.Decode(&resource) != nil {
			return Page{}, errNotList
		}
		id, ok := strings.CutPrefix(resource.ID, prefix)
		switch {
		case !ok:
			return Page{}, fmt.Errorf("it lists %.100q, which is not a variable of our account", resource.ID)
		case len(page.IDs) == most:
			return Page{}, fmt.Errorf("it lists more than the %d that were asked for", most)
		}
		page.IDs = append(page.IDs, id)
		if readers := resource.readers(); readers != "" {
			if shared[readers] == "" {
				shared[readers] = readers
			}
			page.Readers[id] = shared[readers]
		}
		if resource.Secrets != nil && len(*resource.Secrets) == 0 {
			page.Unset[id] = true
		}
		for _, a := range resource.Annotations {
			if a.Name == RotatorAnnotation {
				page.Rotated = append(page.Rotated, id)
			}
		}
	}
	if _, err := dec.Token(); err != nil || dec.More() {
		return Page{}, errNotList
	}
	return page, nil
}

var codeForm = lazyregexp.New(`\bCONJ[0-9]{5}[A-Z]\b`)

// messageCode returns Conjur's message code in an error's body. No other part of a
// body is ever shown.
func messageCode(body []byte) string { return string(codeForm().Find(body)) }

// isSentValue reports whether the answer about one variable has the form in which
// Conjur sends a value. The body itself has no format. Conjur sends a value as a
// binary attachment, with an unusual combination of headers. If a proxy drops them,
// or a broken connection may have truncated the value, the ETag decides: it is a
// hash of this exact body.
func (r *reply) isSentValue() bool {
	disposition, _, _ := mime.ParseMediaType(r.header.Get("Content-Disposition"))
	binary := strings.EqualFold(r.header.Get("Content-Transfer-Encoding"), "binary")
	if disposition == "attachment" && binary && !r.endless {
		return true
	}
	sum := sha256.Sum256(r.body)
	return r.header.Get("ETag") == fmt.Sprintf(`W/"%x"`, sum[:16])
}
