package render

import (
	"cmp"
	"errors"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/Masterminds/sprig/v3"
)

// ownFunctions lists the Secrets Provider's functions, and versions, which reads
// sets. A template for the Secrets Provider can use only those and text/template's.
const ownFunctions = "secret b64enc b64dec versions"

// builtins lists the functions of text/template.
const builtins = "and call eq ge gt html index js le len lt ne not or print printf println slice urlquery"

// sprigFunctions lists the functions from github.com/Masterminds/sprig/v3 whose
// result depends only on their arguments. The list omits functions that read the
// environment (env), the network (getHostByName), the clock (now, ago, date…) or
// randomness (rand…, shuffle, uuidv4). It omits functions that create keys or
// encrypt (gen…, bcrypt, htpasswd, encryptAES, derivePassword). It omits slice,
// which would replace text/template's.
const sprigFunctions = `
	abbrev abbrevboth camelcase cat contains hasPrefix hasSuffix indent
	initials kebabcase lower nindent nospace plural quote repeat replace
	snakecase squote substr swapcase title toString trim trimAll trimPrefix
	trimSuffix trimall trunc untitle upper wrap wrapWith

	adler32sum b32dec b32enc sha1sum sha256sum sha512sum

	regexFind regexFindAll regexMatch regexQuoteMeta regexReplaceAll
	regexReplaceAllLiteral regexSplit mustRegexFind mustRegexFindAll
	mustRegexMatch mustRegexReplaceAll mustRegexReplaceAllLiteral
	mustRegexSplit

	add add1 add1f addf atoi biggest ceil div divf float64 floor int int64
	max maxf min minf mod mul mulf round seq sub subf toDecimal until
	untilStep

	append chunk compact concat first has initial join last list mustAppend
	mustChunk mustCompact mustFirst mustHas mustInitial mustLast mustPrepend
	mustPush mustRest mustReverse mustSlice mustUniq mustWithout prepend push
	rest reverse sortAlpha split splitList splitn toStrings tuple uniq without

	deepCopy dict dig get hasKey keys merge mergeOverwrite mustDeepCopy
	mustMerge mustMergeOverwrite omit pick pluck set unset values

	all any coalesce default empty fail ternary

	fromJson mustFromJson mustToJson mustToPrettyJson mustToRawJson toJson
	toPrettyJson toRawJson

	deepEqual kindIs kindOf typeIs typeIsLike typeOf

	base clean dir ext isAbs osBase osClean osDir osExt osIsAbs
	semverCompare urlJoin urlParse`

// shallowFunctions examine only the first level of a list or map.
const shallowFunctions = `
	all any append chunk coalesce compact concat default dict dig empty first
	get hasKey index initial keys kindIs kindOf last list mustAppend mustChunk
	mustCompact mustFirst mustInitial mustLast mustPrepend mustPush mustRest
	mustReverse mustSlice omit pick pluck prepend push rest reverse ternary
	tuple typeIs typeIsLike typeOf unset values`

// Functions lists the functions that templates can use besides those of
// text/template, sorted by name.
func Functions() []string {
	names := strings.Fields(ownFunctions + " " + sprigFunctions)
	slices.Sort(names)
	return names
}

// library holds all functions that templates can name, the subset from sprig, and
// the limits of their arguments.
type library struct {
	known, sprig map[string]any
	bounds       map[string]int
}

// loadLibrary filters sprig's functions once, because that takes longer than most
// templates.
var loadLibrary = sync.OnceValue(func() library {
	l := library{known: map[string]any{}, sprig: map[string]any{}, bounds: argumentBounds()}
	all := sprig.GenericFuncMap()
	for _, name := range strings.Fields(sprigFunctions) {
		l.sprig[name] = all[name]
	}
	for _, name := range strings.Fields(builtins + " " + ownFunctions + " " + sprigFunctions) {
		l.known[name] = true
	}
	return l
})

// most returns the limit of a function's arguments, in bytes.
func (l library) most(name string) int { return cmp.Or(l.bounds[name], mostArguments) }

// functions returns the named functions that text/template lacks. Each counts
// against the limits of r.
func (r *run) functions(used map[string]bool) map[string]any {
	l := loadLibrary()
	own := r.ownFunctions(l.sprig)
	shallow := strings.Fields(shallowFunctions)
	funcs := make(map[string]any, len(used))
	for name := range used {
		fn := own[name]
		if fn == nil {
			fn = l.sprig[name]
		}
		if fn != nil {
			funcs[name] = r.guard(name, fn, l.most(name), !slices.Contains(shallow, name))
		}
	}
	return funcs
}

// functionError is the failure of a function. It omits the function's message,
// which may contain a value.
type functionError struct{ name, why string }

func (e *functionError) Error() string { return e.name + ": " + e.why }

// failure is an error whose text contains no value.
type failure string

func (f failure) Error() string { return string(f) }

// guard wraps a function. It limits the arguments to most bytes, counts arguments
// and results, and converts errors and panics to functionErrors.
func (r *run) guard(name string, fn any, most int, deep bool) any {
	f := reflect.ValueOf(fn)
	typ := f.Type()
	invoke := f.Call
	if typ.IsVariadic() {
		invoke = f.CallSlice
	}
	return reflect.MakeFunc(typ, func(args []reflect.Value) (results []reflect.Value) {
		defer func() {
			if p := recover(); p != nil {
				panic(safeError(name, p))
			}
		}()
		m := measure{deep: deep, most: most}
		m.arguments(args, typ.IsVariadic())
		if m.bytes > most {
			panic(tooMuch(name, most))
		}
		r.work.spend(m.bytes / argumentPart)
		results = invoke(args)
		if last := results[len(results)-1]; len(results) == 2 && !last.IsNil() {
			panic(last.Interface())
		}
		made := size(results[0], deep, maxResult)
		fits(1, made)
		r.work.spend(made)
		return results
	}).Interface()
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
		return &functionError{name, string(why)}
	}
	return &functionError{name, "it cannot use its argument"}
}
