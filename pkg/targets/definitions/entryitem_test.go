package definitions_test

import (
	"strings"
	"testing"

	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/targets/definitions"
)

func TestAnItemMayHaveAPathAndAMode(t *testing.T) {
	for text, want := range map[string]targets.Entry{
		"- k: a/b\n  path: tls/key.pem\n  mode: 0440":                {Alias: "k", Variable: "a/b", Path: "tls/key.pem", Mode: 0o440},
		"- k: a/b\n  mode: 0o400\n  content-type: base64\n  path: k": {Alias: "k", Variable: "a/b", Path: "k", Mode: 0o400, ContentType: targets.ContentBase64},
		"- content-type: base64\n  k: a/b\n  path: x":                {Alias: "k", Variable: "a/b", Path: "x", ContentType: targets.ContentBase64},
		"- path: a/b":                   {Alias: "path", Variable: "a/b"},
		"- mode: a/b\n  path: x":        {Alias: "mode", Variable: "a/b", Path: "x"},
		"- path: a/b\n  mode: \"0640\"": {Alias: "path", Variable: "a/b", Mode: 0o640},
	} {
		got, warnings, err := definitions.ParseEntries(text, "")
		if want.ContentType == "" {
			want.ContentType = targets.ContentText
		}
		if err != nil || len(warnings) > 0 || len(got) != 1 || got[0] != want {
			t.Errorf("%q: %+v, %v, %v; want %+v", text, got, warnings, err, want)
		}
	}
}

func TestWhatIsWrongWithModesIsSaidAtOnce(t *testing.T) {
	_, _, err := definitions.ParseEntries(`
- a: v
  mode: rw-r-----
- b: v
  mode: "04755"
- c: v
  mode: 0070
- d: v
  path: ""
- e: v
  mode: 0888
- f: v
  path: {x: y}
`, "")
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		`line 2: the mode of "a": "rw-r-----" is not octal; write it like 0440`,
		`line 4: the mode of "b": "04755" has more than the permission bits; take set-uid`,
		`line 6: the mode of "c": "0070" must let the owner read`,
		`line 8: the path of "d" is empty`,
		`line 10: the mode of "e": "0888" is not octal`,
		`line 12: an item is "- alias: id": the value of "path" must be text`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error lacks %q:\n%v", want, err)
		}
	}
}
