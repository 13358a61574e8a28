package render

import (
	"slices"
	"strings"
	"testing"

	"github.com/Masterminds/sprig/v3"

	"github.com/secretsync/syncer/pkg/targets"
)

// Every function of sprig is either allowed or known to be left out, so that
// a new release brings nothing in unseen.
func TestFunctionsOfSprig(t *testing.T) {
	leftOut := strings.Fields(`
		ago bcrypt buildCustomCert date dateInZone dateModify date_in_zone
		date_modify decryptAES derivePassword duration durationRound
		encryptAES env expandenv genCA genCAWithKey genPrivateKey
		genSelfSignedCert genSelfSignedCertWithKey genSignedCert
		genSignedCertWithKey getHostByName hello htmlDate htmlDateInZone
		htpasswd mustDateModify mustToDate must_date_modify now randAlpha
		randAlphaNum randAscii randBytes randInt randNumeric semver shuffle
		slice toDate unixEpoch uuidv4`)
	allowed := strings.Fields(sprigFunctions)
	for name := range sprig.GenericFuncMap() {
		in := slices.Contains(allowed, name) || slices.Contains(strings.Fields(ownFunctions), name)
		if in == slices.Contains(leftOut, name) {
			t.Errorf("function %s: allowed = %t, and left out = %t", name, in, !in)
		}
	}
	for _, name := range leftOut {
		if name == "slice" {
			continue // text/template has one
		}
		target, items := target(targets.FormatTemplate)
		_, err := Render(target, "{{ "+name+" }}", items)
		if err == nil || err.Error() != `template: g:1: function "`+name+`" not defined` {
			t.Errorf("function %s: %v", name, err)
		}
	}
}

func TestFunctions(t *testing.T) {
	funcs := Functions()
	r := &run{work: work{left: maxWork}}
	known := r.functions(names(strings.Join(funcs, " ")))
	for _, name := range funcs {
		if known[name] == nil {
			t.Errorf("%s is listed, but is no function", name)
		}
	}
	if !slices.IsSorted(funcs) || len(slices.Compact(slices.Clone(funcs))) != len(funcs) {
		t.Error("the list is not in order, or names a function twice")
	}
	for _, name := range []string{"secret", "b64enc", "b64dec", "upper"} {
		if !slices.Contains(funcs, name) {
			t.Errorf("%s is not listed", name)
		}
	}
	for _, name := range strings.Fields(shallowFunctions) {
		if !slices.Contains(append(funcs, "index"), name) {
			t.Errorf("%s is called shallow, but is no function", name)
		}
	}
}
