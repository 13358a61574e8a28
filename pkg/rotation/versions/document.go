package versions

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/secretsync/syncer/pkg/secret"
)

// format is the value of "syncerSet". Another number means another format.
const format = 1

// errFormat means that a set has a format of a later Syncer.
var errFormat = errors.New("the set's format is not known")

// documentJSON and versionJSON are the form in Conjur.
type documentJSON struct {
	Set      *int          `json:"syncerSet"`
	Step     uint64        `json:"step"`
	Owner    string        `json:"owner,omitempty"`
	Identity string        `json:"identity,omitempty"`
	Claimed  string        `json:"claimed,omitempty"`
	Paused   bool          `json:"paused,omitempty"`
	Shown    []string      `json:"shown,omitzero"`
	Versions []versionJSON `json:"versions"`
	Log      []Entry       `json:"log,omitempty"`
}

type versionJSON struct {
	ID       string            `json:"id"`
	State    State             `json:"state"`
	Step     uint64            `json:"step"`
	Since    time.Time         `json:"since,omitzero"`
	Made     time.Time         `json:"made,omitzero"`
	Promoted time.Time         `json:"promoted,omitzero"`
	Left     time.Time         `json:"left,omitzero"`
	Fence    string            `json:"fence,omitempty"` // if it differs from the id
	Forced   bool              `json:"forced,omitempty"`
	Filled   bool              `json:"filled,omitempty"`
	Refused  string            `json:"refused,omitempty"`
	Parts    map[string][]byte `json:"parts,omitempty"` // base64
}

// IsSet reports whether a value is a set of any format, or was intended as one.
func IsSet(value []byte) bool {
	var raw struct {
		Set json.RawMessage `json:"syncerSet"`
	}
	return bytes.Contains(value, []byte(`"syncerSet"`)) && json.Unmarshal(value, &raw) == nil && raw.Set != nil
}

// Parse reads a set from a variable's value. Errors list all faults and contain no byte
// of the value.
func Parse(value []byte) (*Document, error) {
	if len(value) > 4*maxBytes {
		return nil, tooLarge(len(value))
	}
	var raw documentJSON
	if err := json.Unmarshal(value, &raw); err != nil {
		return nil, unreadable(err)
	}
	if log, err := json.Marshal(raw.Log); err != nil || len(value)-len(log) > maxBytes { // the next write shortens the log
		return nil, tooLarge(len(value))
	}
	switch {
	case raw.Set == nil:
		return nil, errors.New(`the value is not a set: it has no "syncerSet"; begin one with "syncer rotate init"`)
	case *raw.Set != format:
		return nil, fmt.Errorf("%w: it is %d instead of %d; use the Syncer that wrote it, or a later one", errFormat, *raw.Set, format)
	}
	d := &Document{Step: raw.Step, Owner: raw.Owner, Identity: raw.Identity, Claimed: raw.Claimed, Paused: raw.Paused, Namespaces: raw.Shown, Log: raw.Log}
	for _, r := range raw.Versions {
		v := Version{r.ID, r.State, r.Step, r.Since, r.Made, r.Promoted, r.Left, r.Fence, r.Forced, r.Filled, r.Refused, nil, nil}
		if v.Fence == "" {
			v.Fence = v.ID
		}
		for name, content := range r.Parts {
			if v.Parts == nil {
				v.Parts = make(map[string]secret.Value)
			}
			v.Parts[name] = secret.New(content)
		}
		d.Versions = append(d.Versions, v)
	}
	if err := d.validate(); err != nil {
		return nil, err
	}
	return d, nil
}

// unreadable says where a value is not a valid set. The library's messages quote the
// value, so they are not used.
func unreadable(err error) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return fmt.Errorf("the value is not a set: it is not JSON from byte %d on; put back an earlier one from Conjur's history", syntax.Offset)
	case errors.As(err, &kind) && kind.Field != "":
		return fmt.Errorf("the set's %s is of another type than it should be; put back an earlier one from Conjur's history", kind.Field)
	}
	return errors.New("the value is not a set: it is not a JSON object of its form; put back an earlier one from Conjur's history")
}

func tooLarge(bytes int) error {
	return fmt.Errorf("the set has %d bytes, but at most %d can be; retire versions, or use smaller keys", bytes, maxBytes)
}

// Encode returns the variable's value. It returns an error for a set that Parse would
// refuse, for example because it is too large. It omits the oldest lines of a log that
// does not fit. The last line says which command was answered.
func (d *Document) Encode() ([]byte, error) {
	if err := d.validate(); err != nil {
		return nil, err
	}
	fits := *d
	value := fits.encode()
	for len(value) > maxBytes && len(fits.Log) > 1 {
		fits.Log = fits.Log[1:]
		clear(value)
		value = fits.encode()
	}
	if len(value) > maxBytes {
		return nil, tooLarge(len(value))
	}
	return value, nil
}

func (d *Document) encode() []byte {
	set := format
	raw := documentJSON{&set, d.Step, d.Owner, d.Identity, d.Claimed, d.Paused, d.Namespaces, make([]versionJSON, 0, len(d.Versions)), d.Log}
	for _, v := range d.Versions {
		r := versionJSON{v.ID, v.State, v.Step, v.Since, v.Made, v.Promoted, v.Left, v.Fence, v.Forced, v.Filled, v.Refused, nil}
		if v.Fence == v.ID {
			r.Fence = ""
		}
		for name, content := range v.Parts {
			if r.Parts == nil {
				r.Parts = make(map[string][]byte)
			}
			r.Parts[name] = content.Bytes()
		}
		raw.Versions = append(raw.Versions, r)
	}
	value, err := json.Marshal(raw)
	if err != nil {
		panic(err) // encoding can fail only for a year above 9999
	}
	return value
}

var knownState = []State{Pending, Accepted, Primary, Retiring, Returning, Revoking, Retired}

// isName reports whether a text is a file name of up to 63 letters, digits, - and _. It
// must start with a letter or a digit. A regular expression would cost each process 60 KiB.
func isName(text string) bool {
	for i, r := range text {
		plain := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
		if !plain && (i == 0 || r != '-' && r != '_') {
			return false
		}
	}
	return text != "" && len(text) <= 63
}

// PartRule says which names IsPart accepts.
const PartRule = `must be a file name of up to 63 letters, digits, - and _ other than "primary"`

// IsPart reports whether a part of a version may have the name.
func IsPart(name string) bool { return isName(name) && name != "primary" }

// validate returns all faults of a document.
func (d *Document) validate() error {
	var problems []error
	wrong := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	if d.Live() > MaxVersions {
		wrong("the set has %d versions that are not retired, but at most %d can be; retire some", d.Live(), MaxVersions)
	}
	count := make(map[State]int)
	ids := make(map[string]bool)
	promoted := false
	if d.Step >= maxStep {
		wrong("its step, %d, is so high that none can follow; write a \"step\" below %d into the value, such as that of an earlier value in Conjur's history, and claim the set", d.Step, uint64(maxStep))
	}
	for name, text := range map[string]string{"identity": d.Identity, "claimed": d.Claimed} {
		if text != "" && !isName(text) {
			wrong("its %s is not up to 63 letters, digits, - and _; put back an earlier value from Conjur's history", name)
		}
	}
	for i, v := range d.Versions {
		if !isName(v.ID) {
			wrong("the id of version %d must be a file name of up to 63 letters, digits, - and _; set it again", i+1)
			continue
		}
		if ids[v.ID] {
			wrong("version %s is there twice; take one out", v.ID)
		}
		ids[v.ID] = true
		count[v.State]++
		promoted = promoted || !v.Promoted.IsZero()
		problems = append(problems, v.validate()...)
	}
	switch coming := count[Pending] + count[Accepted] + count[Returning]; {
	case count[Primary] > 1:
		wrong("%d versions are primary; make one of them retiring", count[Primary])
	case count[Primary] == 0 && promoted:
		wrong("no version is primary, though one was; make one of them primary")
	case coming > 1:
		wrong("%d versions are on their way to primary (pending, accepted or returning), but only one can be; make the others retiring", coming)
	}
	return errors.Join(problems...)
}

func (v Version) validate() (problems []error) {
	wrong := func(format string, args ...any) {
		problems = append(problems, fmt.Errorf("version %s: "+format, append([]any{v.ID}, args...)...))
	}
	if !slices.Contains(knownState, v.State) {
		wrong("its state is none of %q; set one", knownState)
	}
	if len(v.Refused) > MaxRefusal {
		wrong("why it was refused takes more than %d bytes; take that out", MaxRefusal)
	}
	if !isName(v.Fence) {
		wrong("its fence is not an id; remove it")
	}
	if v.State != Retired && len(v.Parts) == 0 {
		wrong("it has no parts; retire it, or put back an earlier set from Conjur's history")
	}
	for _, name := range v.PartNames() {
		if !IsPart(name) {
			wrong("the name of a part %s; rename it", PartRule)
		} else if v.Parts[name].Len() == 0 {
			wrong("part %q is empty; take it out", name)
		}
	}
	return problems
}
