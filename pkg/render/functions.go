package render

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/secretsync/syncer/internal/lazyregexp"
)

// function is a function that templates can use. Its result depends only on its
// arguments. A wrong argument is an error: no function guesses, cuts a letter, or hides a
// fault.
type function struct {
	name string
	// params lists the kinds of the arguments, separated by spaces; see kinds. The
	// last one may end in "...": any number of them, also none.
	params string
	// most bounds the bytes of all arguments together, as size counts them. Then no call
	// takes more than 50 ms or makes more than 20 MiB. Zero means mostArguments.
	most int
	// shallow functions examine only the first level of a list or map.
	shallow bool
	call    func(r *run, a args) any // it panics with a failure
}

// The limits of the arguments of functions, in bytes.
const (
	mostArguments = 1 << 20
	mostCopied    = maxResult // text that is only read, or copied once
	mostEscaped   = 512 << 10 // text that makes several bytes of one
	mostWalked    = 256 << 10 // lists and maps, of which each element is visited
	mostParsed    = 64 << 10  // text of which each byte can make an element
	mostNumeric   = 4 << 10   // numbers
)

// secretFunctions are the Secrets Provider's functions, and versions, which reads sets. A
// template for the Secrets Provider can use only those and text/template's.
func secretFunctions() []function {
	return []function{
		{name: "secret", params: "bytes", most: mostCopied, call: func(r *run, a args) any { return r.secret(a.text(0)) }},
		{name: "versions", params: "bytes", call: func(r *run, a args) any { return r.versions(a.text(0)) }},
		{name: "b64enc", params: "bytes", most: mostCopied, call: b64enc},
		{name: "b64dec", params: "bytes", most: mostCopied, call: b64dec},
	}
}

// plain lists the functions that a template for the Secrets Provider can use.
func plain() map[string]bool {
	names := map[string]bool{"and": true, "or": true, "call": true}
	for _, f := range append(secretFunctions(), builtins()...) {
		names[f.name] = true
	}
	return names
}

// Functions lists the functions that templates can use besides those of
// text/template, sorted by name.
func Functions() []string {
	var names []string
	for _, f := range own() {
		names = append(names, f.name)
	}
	slices.Sort(names)
	return names
}

// own returns all functions besides those of text/template.
func own() []function {
	return slices.Concat(secretFunctions(), textFunctions(), regexFunctions(), numberFunctions(), listFunctions(), mapFunctions(), otherFunctions())
}

// library holds all functions that templates can name.
type library struct {
	known map[string]any // for the parser
	all   map[string]*function
	plain map[string]bool
}

var loadLibrary = sync.OnceValue(func() library {
	l := library{known: map[string]any{"and": true, "or": true, "call": true}, all: map[string]*function{}, plain: plain()}
	for _, f := range append(own(), builtins()...) {
		f.most = cmp.Or(f.most, mostArguments)
		l.all[f.name], l.known[f.name] = &f, true
	}
	return l
})

// functions returns the named functions. Each counts against the limits of r. The
// functions and, or and call remain those of text/template.
func (r *run) functions(used map[string]bool) map[string]any {
	l := loadLibrary()
	funcs := make(map[string]any, len(used))
	for name := range used {
		if f := l.all[name]; f != nil {
			funcs[name] = r.guard(f)
		}
	}
	return funcs
}

// functionError is the failure of a function. It contains no value.
type functionError struct {
	name, why string
	always    bool // it does not depend on values
}

func (e *functionError) Error() string { return e.name + ": " + e.why }

// failure is an error whose text contains no value.
type failure string

func (f failure) Error() string { return string(f) }

// guard wraps a function. It limits and checks the arguments, counts arguments and
// results, and converts panics to errors.
func (r *run) guard(f *function) func(...any) (any, error) {
	return func(given ...any) (result any, err error) {
		defer func() {
			if p := recover(); p != nil {
				result, err = nil, safeError(f.name, p)
			}
		}()
		m := measure{deep: !f.shallow, most: f.most}
		m.arguments(given, strings.Count(f.params, " ")+1)
		if m.bytes > f.most {
			return nil, tooMuch(f.name, f.most)
		}
		r.work.spend(m.bytes / argumentPart)
		a, err := f.arguments(given)
		if err != nil {
			return nil, err
		}
		result = f.call(r, a)
		made := size(reflect.ValueOf(result), !f.shallow, maxResult)
		fits(1, made)
		r.work.spend(made)
		return result, nil
	}
}

// safeError returns an error for a panic in the function name.
func safeError(name string, p any) error {
	err, _ := p.(error)
	var limit *limitError
	var alias unknownAlias
	var why failure
	switch {
	case errors.As(err, &limit):
		return limit
	case errors.As(err, &alias):
		return alias
	case errors.As(err, &why):
		return &functionError{name: name, why: string(why)}
	}
	return &functionError{name: name, why: "it cannot use its argument"}
}

// replacements says what to use instead of functions that other programs offer, by the
// function's name. Their results are doubtful, depend on more than the arguments, or have
// another name here.
var replacements = sync.OnceValue(func() map[string]string {
	instead := map[string]string{}
	for _, row := range []struct{ names, use string }{
		{"abbrev", "trunc"},
		{"abbrevboth substring", "substr"},
		{"initials", "regexFindAll"},
		{"title untitle swapcase", "upper or lower"},
		{"camelcase kebabcase snakecase", "regexReplaceAll, upper or lower"},
		{"plural", "ternary"},
		{"cat", "print"},
		{"wrap wrapWith", "regexReplaceAll"},
		{"trimall", "trimAll"},
		{"add1", "add"},
		{"biggest", "max"},
		{"int64 float64", "int"},
		{"toDecimal", "atoi"},
		{"add1f addf subf mulf divf maxf minf round floor ceil", "add, sub, mul or div, with whole numbers"},
		{"seq", "until or untilStep"},
		{"tuple", "list"},
		{"push", "append"},
		{"chunk", "slice"},
		{"compact", "without"},
		{"toStrings", "toString for each element"},
		{"pluck", "get"},
		{"all", "and"},
		{"any", "or"},
		{"kindOf typeIs typeIsLike typeOf", "kindIs"},
		{"clean isAbs osIsAbs osClean ext osExt", "regexMatch or regexReplaceAll"},
		{"osBase", "base"},
		{"osDir", "dir"},
		{"urlJoin", "print, with urlquery for each part"},
		{"semver semverCompare", "regexMatch"},
		{"mustAppend mustPush", "append"},
		{"mustCompact", "without"},
		{"mustChunk mustSlice", "slice"},
		{"mustDeepCopy", "deepCopy"}, {"mustFirst", "first"}, {"mustFromJson", "fromJson"}, {"mustHas", "has"}, {"mustInitial", "initial"},
		{"mustLast", "last"}, {"mustMerge", "merge"}, {"mustMergeOverwrite", "mergeOverwrite"}, {"mustPrepend", "prepend"},
		{"mustRegexFind", "regexFind"}, {"mustRegexFindAll", "regexFindAll"}, {"mustRegexMatch", "regexMatch"},
		{"mustRegexReplaceAll", "regexReplaceAll"}, {"mustRegexReplaceAllLiteral", "regexReplaceAllLiteral"},
		{"mustRegexSplit", "regexSplit"}, {"mustRest", "rest"}, {"mustReverse", "reverse"}, {"mustToJson", "toJson"},
		{"mustToPrettyJson", "toPrettyJson"}, {"mustToRawJson", "toRawJson"}, {"mustUniq", "uniq"}, {"mustWithout", "without"},
		{"toYaml", "toJson, which YAML contains"},
		{"fromYaml", "fromJson, with a value in JSON"},
		{"b64encode base64Encode", "b64enc"},
		{"b64decode base64Decode", "b64dec"},
		{"toJSON parseJSON", "toJson or fromJson"},
		{"toUpper", "upper"}, {"toLower", "lower"}, {"trimSpace", "trim"}, {"replaceAll", "replace"}, {"sha256Hex", "sha256sum"},
		{"pkcs12key pkcs12keyPass pkcs12cert pkcs12certPass", "a variable for the certificate and one for the key, in PEM"},
		{"pemToPkcs12 pemToPkcs12Pass fullPemToPkcs12 fullPemToPkcs12Pass pemTruststoreToPKCS12 pemTruststoreToPKCS12Pass", "a variable with the archive, in base64"},
		{"filterPEM filterCertChain certSANs pemCertificate pemPrivateKey", "a variable for each part, in PEM"},
		{"jwkPublicKeyPem jwkPrivateKeyPem", "a variable with the key in PEM"},
		{"randAlpha randAlphaNum randAscii randBytes randInt randNumeric shuffle uuidv4 genPrivateKey genCA genCAWithKey genSelfSignedCert genSelfSignedCertWithKey genSignedCert genSignedCertWithKey bcrypt htpasswd derivePassword", "a set of the rotation, which makes such values"},
		{"now date dateInZone dateModify htmlDate ago toDate unixEpoch duration env expandenv getHostByName", "a variable, because a template depends on nothing else"},
	} {
		for name := range strings.FieldsSeq(row.names) {
			instead[name] = row.use
		}
	}
	return instead
})

// undefinedFunction matches the parser's message for an unknown function.
var undefinedFunction = lazyregexp.New(`function "(\w+)" not defined$`)

// withReplacement adds to the parser's error what to use instead of an unknown function.
func withReplacement(err error) error {
	if found := undefinedFunction().FindStringSubmatch(err.Error()); found != nil {
		if use := replacements()[found[1]]; use != "" {
			return fmt.Errorf("%w; use %s", err, use)
		}
	}
	return err
}
