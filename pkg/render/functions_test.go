package render

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/secretsync/syncer/pkg/targets"
)

// functionCases are, for each function, its results and the faults that it must not hide.
// A want that begins with "error: " is that of an error.
var functionCases = map[string][]struct{ template, want string }{
	"secret":   {{`{{ secret "user" }}`, "admin"}, {`{{ secret 5 }}`, "error: secret: argument 1 must be text, not a whole number"}},
	"versions": {{`{{ versions "user" }}`, "error: no set of that alias"}},
	"b64enc":   {{`{{ b64enc "é" }}`, "w6k="}, {`{{ b64enc 5 }}`, "error: b64enc: argument 1 must be text"}},
	"b64dec":   {{`{{ b64dec "w6k=" }}`, "é"}, {`{{ b64dec "w6k" }}`, "error: b64dec: argument 1 is not base64"}, {`{{ b64dec "" }}`, ""}},
	"b32enc":   {{`{{ b32enc "x" }}`, "PA======"}},
	"b32dec":   {{`{{ b32dec "PA======" }}`, "x"}, {`{{ b32dec "PA" }}`, "error: b32dec: argument 1 is not base32"}},
	"sha1sum":  {{`{{ sha1sum "" }}`, "da39a3ee5e6b4b0d3255bfef95601890afd80709"}},
	"sha256sum": {{`{{ sha256sum "" }}`, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
		{`{{ sha256sum (fromJson "5") }}`, "error: sha256sum: argument 1 must be text"}},
	"sha512sum":  {{`{{ sha512sum "" | trunc 8 }}`, "cf83e135"}},
	"adler32sum": {{`{{ adler32sum "Wikipedia" }}`, "300286872"}},

	"upper":      {{`{{ upper "aé" }}`, "AÉ"}, {`{{ upper (b64dec "/w==") }}`, "error: upper: argument 1 is not UTF-8"}},
	"lower":      {{`{{ lower "AÉ" }}`, "aé"}, {`{{ lower (b64dec "/w==") }}`, "error: lower: argument 1 is not UTF-8"}},
	"trim":       {{`{{ trim " a b\n" }}`, "a b"}, {`{{ trim (b64dec "/yA=") | b64enc }}`, "/w=="}},
	"trimAll":    {{`{{ trimAll "é$" "é$a$é" }}`, "a"}, {`{{ trimAll (b64dec "ww==") "é" }}`, "error: trimAll: argument 1 is not UTF-8"}},
	"trimPrefix": {{`{{ trimPrefix "é" "éa" }}`, "a"}, {`{{ trimPrefix (b64dec "ww==") "é" }}`, "error: trimPrefix: argument 1 is not UTF-8"}},
	"trimSuffix": {{`{{ trimSuffix "é" "aé" }}`, "a"}, {`{{ trimSuffix (b64dec "qQ==") "é" }}`, "error: trimSuffix: argument 1 is not UTF-8"}},
	"nospace":    {{`{{ nospace " é 中\t🔑\u00a0\n" }}`, "é中🔑"}, {`{{ nospace (b64dec "/w==") }}`, "error: nospace: argument 1 is not UTF-8"}},
	"contains":   {{`{{ contains "b" "abc" }}{{ contains "x" "abc" }}`, "truefalse"}},
	"hasPrefix":  {{`{{ hasPrefix "a" "abc" }}`, "true"}},
	"hasSuffix":  {{`{{ hasSuffix "c" "abc" }}`, "true"}},
	"trunc": {{`{{ trunc 2 "éàü" }}{{ trunc -2 "éàü" }}{{ trunc 9 "é" }}{{ trunc -9 "é" }}|{{ trunc 0 "é" }}`, "éààüéé|"},
		{`{{ trunc "2" "abc" }}`, "error: trunc: argument 1 must be a whole number, not text"}, {`{{ trunc 1.5 "abc" }}`, "error: trunc: argument 1 must be a whole number"},
		{`{{ trunc 1 "e\u0301a" }}`, "error: trunc: it would cut between a letter and its mark"}, {`{{ trunc 2 "e\u0301a" }}`, "e\u0301"}, {`{{ trunc -2 "ae\u0301" }}`, "e\u0301"}, {`{{ trunc -1 "ae\u0301" }}`, "error: trunc: it would cut"},
		{`{{ trunc 1 (b64dec "/w==") }}`, "error: trunc: argument 2 is not UTF-8"}},
	"substr": {{`{{ substr 1 2 "éàü" }}{{ substr 1 -1 "éàü" }}{{ substr 3 3 "éàü" }}`, "ààü"},
		{`{{ substr 0 4 "éàü" }}`, "error: substr: argument 2 is outside of the text"}, {`{{ substr 4 -1 "éàü" }}`, "error: substr: argument 1 is outside of the text"},
		{`{{ substr 2 1 "éàü" }}`, "error: substr: argument 2 is outside"}, {`{{ substr 1 -1 "e\u0301" }}`, "error: substr: it would cut"}, {`{{ substr -1 1 "é" }}`, "error: substr: argument 1 is outside"}},
	"repeat":  {{`{{ repeat 2 "é" }}|{{ repeat 0 "é" }}|`, "éé||"}, {`{{ repeat -1 "é" }}`, "error: repeat: argument 1 is negative"}},
	"indent":  {{`{{ indent 1 "a\nb" }}{{ indent 0 "a\nb" }}`, " a\n ba\nb"}, {`{{ indent -1 "a" }}`, "error: indent: argument 1 is negative"}},
	"nindent": {{`{{ nindent 1 "a" }}`, "\n a"}, {`{{ nindent -1 "a" }}`, "error: nindent: argument 1 is negative"}},
	"replace": {{`{{ replace "é" "e" "éé" }}`, "ee"}, {`{{ replace "" "-" "ab" }}`, "error: replace: argument 1 is empty"},
		{`{{ replace (b64dec "ww==") "" "é" }}`, "error: replace: argument 1 is not UTF-8"}},
	"quote": {{`{{ quote "é\"\\\n\x00\x7f\u0085🔑\U000e0001" }}{{ quote 5 }}{{ quote (fromJson "1.50") }}`, `"é\"\\\n\u0000\u007f\u0085🔑` + "\U000e0001" + `""5""1.50"`},
		{`{{ quote (b64dec "/w==") }}`, "error: quote: argument 1 is not UTF-8"}, {`{{ quote (list 1) }}`, "error: quote: argument 1 must be text, a number or a Boolean, not a list"},
		{`{{ quote nil }}`, "error: quote: argument 1 must be text, a number or a Boolean, not nothing"}},
	"squote":   {{`{{ squote "a\"b" }}`, `'a"b'`}, {`{{ squote "it's" }}`, "error: squote: argument 1 has a single quote or a line break"}, {`{{ squote "a\nb" }}`, "error: squote: argument 1"}},
	"toString": {{`{{ toString 5 }}{{ toString true }}{{ toString (fromJson "1.0") }}`, "5true1.0"}, {`{{ toString (dict) }}`, "error: toString: argument 1 must be text, a number or a Boolean, not a map"}},
	"base":     {{`{{ base "a/b" }}`, "b"}, {`{{ base "" }}`, "error: base: argument 1 is empty"}},
	"dir":      {{`{{ dir "a/b" }}`, "a"}, {`{{ dir "" }}`, "error: dir: argument 1 is empty"}},

	"regexMatch": {{`{{ regexMatch "^é$" "é" }}`, "true"}, {`{{ regexMatch "(" "é" }}`, "error: regexMatch: argument 1 is not a regular expression"}},
	"regexFind":  {{`{{ regexFind "é+" "aéé" }}`, "éé"}, {`{{ regexFind "x" "aéé" }}`, "error: regexFind: argument 2 does not match the pattern"}},
	"regexFindAll": {{`{{ regexFindAll "." "éà" -1 | join "," }}`, "é,à"}, {`{{ regexFindAll "." "éà" 0 }}`, "error: regexFindAll: argument 3 must be -1 or at least 1"},
		{`{{ regexFindAll "." (b64dec "/w==") 1 }}`, "error: regexFindAll: argument 2 is not UTF-8"}},
	"regexSplit": {{`{{ regexSplit "," "é,à" -1 | join "|" }}`, "é|à"}, {`{{ regexSplit "," "a" -2 }}`, "error: regexSplit: argument 3 must be"}},
	"regexReplaceAll": {{`{{ regexReplaceAll "(é)(?P<x>.)" "éà" "${x}$1$$" }}`, "àé$"}, {`{{ regexReplaceAll "(a)" "a" "$2" }}`, "error: regexReplaceAll: argument 3 refers to a group that the pattern lacks"},
		{`{{ regexReplaceAll "(a)" "a" "$1x" }}`, "error: regexReplaceAll: argument 3 refers to a group"}},
	"regexReplaceAllLiteral": {{`{{ regexReplaceAllLiteral "a" "aé" "$1" }}`, "$1é"}},
	"regexQuoteMeta":         {{`{{ regexQuoteMeta "a.b" }}`, `a\.b`}},

	"add": {{`{{ add 1 2 "3" }}{{ add (fromJson "9007199254740993") 0 }}`, "69007199254740993"}, {`{{ add "x" 1 }}`, "error: add: argument 1 is not a whole number"},
		{`{{ add 1 "" }}`, "error: add: argument 2 is not a whole number"}, {`{{ add 1 1.5 }}`, "error: add: argument 2 must be a whole number"}, {`{{ add 1 true }}`, "error: add: argument 2 must be a whole number, not a Boolean"},
		{`{{ add 9223372036854775807 1 }}`, "error: add: the result has more than 64 bits"}, {`{{ add "0x10" 1 }}`, "error: add: argument 1"}, {`{{ add " 1" 1 }}`, "error: add: argument 1"}, {`{{ add 1 "9223372036854775808" }}`, "error: add: argument 2"}},
	"sub":  {{`{{ sub 1 "2" }}`, "-1"}, {`{{ sub -9223372036854775808 1 }}`, "error: sub: the result has more than 64 bits"}, {`{{ sub 1 2 3 }}`, "error: sub: wrong number of arguments: it takes 2, not 3"}},
	"mul":  {{`{{ mul 2 3 4 }}`, "24"}, {`{{ mul 9223372036854775807 2 }}`, "error: mul: the result has more than 64 bits"}, {`{{ mul -1 -9223372036854775808 }}`, "error: mul: the result"}},
	"div":  {{`{{ div 7 2 }}`, "3"}, {`{{ div 1 0 }}`, "error: div: argument 2 is zero"}, {`{{ div -9223372036854775808 -1 }}`, "error: div: the result"}, {`{{ div 1 "x" }}`, "error: div: argument 2"}},
	"mod":  {{`{{ mod 7 2 }}`, "1"}, {`{{ mod 1 0 }}`, "error: mod: argument 2 is zero"}},
	"max":  {{`{{ max 1 3 2 }}`, "3"}, {`{{ max 1 "x" }}`, "error: max: argument 2"}},
	"min":  {{`{{ min 1 3 2 }}`, "1"}, {`{{ min "" 1 }}`, "error: min: argument 1"}},
	"atoi": {{`{{ atoi "-7" }}{{ atoi "010" }}`, "-710"}, {`{{ atoi "x" }}`, "error: atoi: argument 1 is not a whole number"}, {`{{ atoi "1_0" }}`, "error: atoi: argument 1"}, {`{{ atoi "1.0" }}`, "error: atoi: argument 1"}, {`{{ atoi "7\n" }}`, "error: atoi: argument 1"}, {`{{ atoi "+7" }}`, "error: atoi: argument 1"}},
	"int":  {{`{{ int "7" }}{{ int (fromJson "-0") }}`, "70"}, {`{{ int "7.5" }}`, "error: int: argument 1 is not"}, {`{{ int (fromJson "1e2") }}`, "error: int: argument 1 must be a whole number"}, {`{{ int nil }}`, "error: int: argument 1 must be a whole number, not nothing"}},

	"list":      {{`{{ list 1 "a" true | join "," }}`, "1,a,true"}},
	"first":     {{`{{ first (list 1 2) }}`, "1"}, {`{{ first list }}`, "error: first: argument 1 is an empty list"}, {`{{ first "ab" }}`, "error: first: argument 1 must be a list, not text"}},
	"last":      {{`{{ last (list 1 2) }}`, "2"}, {`{{ last list }}`, "error: last: argument 1 is an empty list"}},
	"rest":      {{`{{ rest (list 1 2 3) | join "," }}`, "2,3"}, {`{{ rest list }}`, "error: rest: argument 1 is an empty list"}},
	"initial":   {{`{{ initial (list 1 2 3) | join "," }}`, "1,2"}, {`{{ initial list }}`, "error: initial: argument 1 is an empty list"}},
	"append":    {{`{{ $l := list 1 }}{{ $m := append $l 2 }}{{ $n := append $l 3 }}{{ join "," $m }};{{ join "," $n }}`, "1,2;1,3"}, {`{{ append "a" 1 }}`, "error: append: argument 1 must be a list"}},
	"prepend":   {{`{{ prepend (list 1) 2 | join "," }}`, "2,1"}},
	"concat":    {{`{{ concat (list 1) (list 2) | join "," }}`, "1,2"}, {`{{ concat (list 1) 2 }}`, "error: concat: argument 2 must be a list"}},
	"reverse":   {{`{{ $l := list 1 2 }}{{ reverse $l | join "," }}{{ join "," $l }}`, "2,11,2"}},
	"has":       {{`{{ has 1 (fromJson "[1.0]") }}{{ has 1 (list "1") }}`, "truefalse"}, {`{{ has "a" "abc" }}`, "error: has: argument 2 must be a list, not text"}},
	"uniq":      {{`{{ uniq (fromJson "[1,1.0,\"1\"]") | join "," }}`, "1,1"}},
	"without":   {{`{{ without (list 1 2 3) 1 3 | join "," }}`, "2"}},
	"sortAlpha": {{`{{ sortAlpha (list "b" "a" 3) | join "," }}`, "3,a,b"}, {`{{ sortAlpha (list (list 1)) }}`, "error: sortAlpha: argument 1 has an element that must be text"}},
	"join":      {{`{{ join "-" (list 1 "é" true) }}`, "1-é-true"}, {`{{ join "-" (fromJson "[1,null]") }}`, "error: join: argument 2 has an element that must be text, a number or a Boolean, not nothing"}, {`{{ join "," "ab" }}`, "error: join: argument 2 must be a list, not text"}},
	"splitList": {{`{{ splitList "" "éà" | join "," }}`, "é,à"}, {`{{ splitList (b64dec "ww==") "é" }}`, "error: splitList: argument 1 is not UTF-8"}},
	"split":     {{`{{ (split "," "a,b")._1 }}`, "b"}, {`{{ (split "," "a,b")._2 }}`, `error: map has no entry for key "_2"`}},
	"splitn":    {{`{{ (splitn ":" 2 "a:b:c")._1 }}`, "b:c"}, {`{{ splitn ":" 0 "a" }}`, "error: splitn: argument 2 is less than 1"}},
	"until":     {{`{{ until 3 | join "," }};{{ until -2 | join "," }}`, "0,1,2;0,-1"}, {`{{ until "3" }}`, "error: until: argument 1 must be a whole number, not text"}},
	"untilStep": {{`{{ untilStep 3 0 -2 | join "," }}`, "3,1"}, {`{{ untilStep 0 3 0 }}`, "error: untilStep: argument 3 is zero"}},

	"dict":   {{`{{ (dict "a" 1).a }}`, "1"}, {`{{ dict "a" }}`, "error: dict: the last key has no value"}, {`{{ dict 1 2 }}`, "error: dict: argument 1 must be text"}, {`{{ dict "a" 1 "a" 2 }}`, "error: dict: argument 3 is a key that is there twice"}},
	"get":    {{`{{ get (dict "a" 1) "a" }}`, "1"}, {`{{ get (dict "a" 1) "b" }}`, "error: get: argument 2 is not a key of the map; use dig for a default"}},
	"dig":    {{`{{ dig "a" "b" 7 (fromJson "{\"a\":{\"b\":1}}") }}{{ dig "x" "b" 7 (dict) }}`, "17"}, {`{{ dig "a" "b" 7 (dict "a" 1) }}`, "error: dig: argument 2 is a key of a whole number, which must be a map"}, {`{{ dig 1 2 (dict) }}`, "error: dig: argument 1 must be text"}, {`{{ dig "a" (dict) }}`, "error: dig: it takes keys, a default and a map"}},
	"hasKey": {{`{{ hasKey (dict "a" 1) "b" }}`, "false"}, {`{{ hasKey "a" "b" }}`, "error: hasKey: argument 1 must be a map, not text"}},
	"set":    {{`{{ $d := dict }}{{ $_ := set $d "a" 1 }}{{ $d.a }}`, "1"}, {`{{ set (dict) 1 1 }}`, "error: set: argument 2 must be text"}},
	"unset":  {{`{{ hasKey (unset (dict "a" 1) "a") "a" }}`, "false"}},
	"keys":   {{`{{ keys (dict "b" 1 "a" 2) | join "," }}`, "a,b"}, {`{{ keys (list 1) }}`, "error: keys: argument 1 must be a map, not a list"}},
	"values": {{`{{ values (dict "b" 1 "a" 2) | join "," }}`, "2,1"}},
	"pick":   {{`{{ pick (dict "b" 1 "a" 2) "a" | toJson }}`, `{"a":2}`}, {`{{ pick (dict "b" 1) "a" }}`, "error: pick: argument 2 is not a key of the map"}},
	"omit":   {{`{{ omit (dict "b" 1 "a" 2) "a" | toJson }}`, `{"b":1}`}},
	"merge":  {{`{{ $d := dict "a" 0 "m" (dict "x" "") }}{{ $_ := merge $d (dict "a" 1 "b" 2 "m" (dict "x" 1 "y" 2)) }}{{ toJson $d }}`, `{"a":0,"b":2,"m":{"x":"","y":2}}`}},
	"mergeOverwrite": {{`{{ $e := dict "m" (dict "x" 1) }}{{ $d := dict }}{{ $_ := mergeOverwrite $d $e (dict "m" (dict "x" 2)) }}{{ toJson $d }}{{ toJson $e }}`, `{"m":{"x":2}}{"m":{"x":1}}`},
		{`{{ mergeOverwrite (dict "a" true) (dict "a" false) | toJson }}`, `{"a":false}`}},
	"deepCopy": {{`{{ $d := dict "m" (dict "x" 1) }}{{ $e := deepCopy $d }}{{ $_ := set $e.m "x" 2 }}{{ $d.m.x }}`, "1"}},

	"default":   {{`{{ default 5 "" }}{{ default 5 0 }}{{ default true false }}{{ default "d" (dict) }}`, "50falsed"}, {`{{ default "x" nil }}`, "x"}},
	"coalesce":  {{`{{ coalesce "" nil 0 1 }}`, "0"}, {`{{ coalesce "" nil }}`, "error: coalesce: all arguments are empty"}},
	"empty":     {{`{{ empty "" }}{{ empty (list) }}{{ empty 0 }}{{ empty false }}`, "truetruefalsefalse"}},
	"ternary":   {{`{{ ternary "a" "b" true }}`, "a"}, {`{{ ternary "a" "b" "true" }}`, "error: ternary: argument 3 must be true or false, not text"}, {`{{ ternary "a" "b" 1 }}`, "error: ternary: argument 3"}},
	"fail":      {{`{{ fail "no port" }}`, "error: fail: no port"}, {`{{ fail (secret "user") }}`, "error: fail: the template gives up"}},
	"deepEqual": {{`{{ deepEqual (list 1 "a") (fromJson "[1,\"a\"]") }}{{ deepEqual 1 (fromJson "1.0") }}`, "truetrue"}},
	"kindIs":    {{`{{ kindIs "number" 5 }}{{ kindIs "number" (fromJson "5.5") }}{{ kindIs "string" "a" }}{{ kindIs "map" (list) }}`, "truetruetruefalse"}, {`{{ kindIs "float64" 5.5 }}`, "error: kindIs: argument 1 must be string, number"}},
	"toJson":    {{`{{ toJson (dict "a" (fromJson "12345678901234567890.10")) }}{{ toJson "<" }}`, `{"a":12345678901234567890.10}"\u003c"`}, {`{{ toJson (b64dec "/w==") }}`, "error: toJson: argument 1 has text that is not UTF-8"}},
	"toRawJson": {{`{{ toRawJson "<" }}`, `"<"`}}, "toPrettyJson": {{`{{ toPrettyJson (list 1) }}`, "[\n  1\n]"}},
	"fromJson": {
		{`{{ fromJson "12345678" }} {{ fromJson "9007199254740993" }} {{ fromJson "1e400" }} {{ fromJson "-0" }} {{ fromJson "1.50" }} {{ fromJson "0.1E+2" }}`, "12345678 9007199254740993 1e400 -0 1.50 0.1E+2"},
		{`{{ fromJson "{\"a\":[12345678,-0,1.0,100000000000000000000]}" | toJson }}`, `{"a":[12345678,-0,1.0,100000000000000000000]}`},
		{`{{ fromJson "{\"a\":" }}`, "error: fromJson: argument 1 is not JSON"}, {`{{ fromJson "{} x" }}`, "error: fromJson: argument 1 is not a single JSON text"}, {`{{ fromJson "1 2" }}`, "error: fromJson: argument 1 is not a single"},
		{`{{ fromJson "" }}`, "error: fromJson: argument 1 is not JSON"}, {`{{ fromJson "{\"a\":1,\"a\":2}" }}`, "error: fromJson: argument 1 has a key twice"}, {`{{ fromJson "\"\\ud800x\"" }}`, "error: fromJson: argument 1 has an escape of half a character"},
		{`{{ fromJson "\"\\ud83d\\udd11 \\\\ud800\"" }}`, `🔑 \ud800`}, {`{{ fromJson "01" }}`, "error: fromJson"}, {`{{ fromJson "[1,]" }}`, "error: fromJson"}, {`{{ fromJson "nul" }}`, "error: fromJson"}, {`{{ fromJson "null" }}`, "error: print: there is no value"},
		{`{{ fromJson "[1 2]" }}`, "error: fromJson"}, {`{{ fromJson "}" }}`, "error: fromJson"}, {`{{ fromJson "{1:2}" }}`, "error: fromJson"}, {`{{ fromJson "[1}" }}`, "error: fromJson"}, {`{{ fromJson "NaN" }}`, "error: fromJson"}, {`{{ fromJson (b64dec "Iv8i") }}`, "error: fromJson: argument 1 is not UTF-8"}},
	"urlParse": {{`{{ $u := urlParse "https://u:p%40@h:1/a?b#c" }}{{ $u.scheme }} {{ $u.userinfo }} {{ $u.host }} {{ $u.hostname }} {{ $u.path }} {{ $u.query }} {{ $u.fragment }}`, "https u:p%40 h:1 h /a b c"}, {`{{ urlParse "http://h/%zz" }}`, "error: urlParse: argument 1 is not a URL"}, {`{{ urlParse "just text" }}`, "error: urlParse"}},

	"eq": {{`{{ eq 1 (fromJson "1.0") }}{{ eq "a" "b" "a" }}{{ eq (fromJson "9007199254740993") 9007199254740992 }}{{ eq 1 1.0 }}`, "truetruefalsetrue"}, {`{{ eq "1" 1 }}`, "error: eq: text and a whole number cannot be compared"}, {`{{ eq (list) (list) }}`, "error: eq: a list cannot be compared; use deepEqual"}, {`{{ eq 1 }}`, "error: eq: wrong number of arguments: it takes at least 2, not 1"}},
	"ne": {{`{{ ne 1 2 }}`, "true"}, {`{{ ne true "true" }}`, "error: ne: a Boolean and text cannot be compared"}},
	"lt": {{`{{ lt (fromJson "9") (fromJson "10.5") }}{{ lt -1.5 -1 }}`, "truetrue"}, {`{{ lt "9" 10 }}`, "error: lt: text and a whole number cannot be compared"}, {`{{ lt true false }}`, "error: lt: a Boolean cannot be compared"}},
	"le": {{`{{ le 1 1 }}`, "true"}, {`{{ le nil 1 }}`, "error: le: nothing and a whole number"}}, "gt": {{`{{ gt (fromJson "1e400") 1 }}`, "true"}, {`{{ gt "a" 1 }}`, "error: gt:"}}, "ge": {{`{{ ge "b" "a" }}`, "true"}, {`{{ ge (list) 1 }}`, "error: ge: a list"}},
	"not":   {{`{{ not "" }}`, "true"}, {`{{ not (fromJson "0.0") }}`, "error: not: the number is zero, but not written as 0"}},
	"len":   {{`{{ len "é" }}{{ len (list 1) }}`, "21"}, {`{{ len 5 }}`, "error: len: argument 1 must be text, a list or a map, not a whole number"}},
	"index": {{`{{ index (list 1 2) 1 }}{{ index (dict "a" (list 5)) "a" 0 }}`, "25"}, {`{{ index "abc" 1 }}`, "error: index: argument 1 is text, which has no elements; use substr"}, {`{{ index (list 1) 1 }}`, "error: index: argument 2 is outside of the list"}, {`{{ index (list 1) "0" }}`, "error: index: argument 2 must be a whole number"}, {`{{ index (dict) "a" }}`, "error: index: argument 2 is not a key of the map"}},
	"slice": {{`{{ slice "aé" 1 }}{{ slice (list 1 2 3) 1 2 | join "," }}{{ slice (b64dec "/4A=") 1 | b64enc }}`, "é2gA=="}, {`{{ slice "aé" 2 }}`, "error: slice: argument 2 is within a letter"}, {`{{ slice "é" 0 1 }}`, "error: slice: argument 3 is within a letter"}, {`{{ slice "ab" 1 9 }}`, "error: slice: argument 3 is outside"}, {`{{ slice "ab" 2 1 }}`, "error: slice: argument 3 is outside"}},
	"print": {{`{{ print "a" 1 2 true }}`, "a1 2 true"}, {`{{ print nil }}`, "error: print: argument 1 must be text, a number or a Boolean, not nothing"}, {`{{ print (list 1) }}`, "error: print: argument 1 must be text"}}, "println": {{`{{ println "a" 1 }}`, "a 1\n"}, {`{{ println (dict) }}`, "error: println: argument 1"}},
	"printf": {{`{{ printf "%s|%5d|%-3q|%x|%v|%t|%.1f|%%|%05d" "é" 7 "a" "é" (fromJson "1.50") true (fromJson "2.25") (fromJson "100000000000000000000") }}`, `é|    7|"a"|c3a9|1.50|true|2.2|%|100000000000000000000`},
		{`{{ printf "%d" "x" }}`, "error: printf: argument 2 must be a whole number for %d, not text"}, {`{{ printf "%s" 5 }}`, "error: printf: argument 2 must be text for %s, not a whole number"}, {`{{ printf "%s" nil }}`, "error: printf: argument 2 must be text for %s, not nothing"}, {`{{ printf "%v" (list 1) }}`, "error: printf: argument 2 must be text, a number or a Boolean for %v, not a list"},
		{`{{ printf "%s" }}`, "error: printf: argument 1 has more verbs than there are values"}, {`{{ printf "x" 1 }}`, "error: printf: argument 2 has no verb"}, {`{{ printf "%z" 1 }}`, "error: printf: argument 1 has a verb that is not supported"}, {`{{ printf "%" }}`, "error: printf: argument 1 ends within a verb"}, {`{{ printf "%[1]s" "a" }}`, "error: printf: argument 1 has * or ["}, {`{{ printf "%!" }}`, "error: printf: argument 1"},
		{`{{ printf "%f" (fromJson "9007199254740993.5") }}`, "error: printf: argument 2 must be a number that 64 bits hold"}, {`{{ printf "%.1x" "é" }}`, "error: printf: argument 2 would be cut within a letter"}, {`{{ printf "%T" 1 }}`, "error: printf: argument 1"}, {`{{ printf "%c" 65 }}`, "error: printf: argument 1"}, {`{{ printf "%5%" }}`, "error: printf: argument 1 has a width"}},
	"html": {{`{{ html "<" 5 }}`, "&lt;5"}, {`{{ html "\x00" }}`, "error: html: argument 1 has a NUL byte"}, {`{{ html "a" (b64dec "/w==") }}`, "error: html: argument 2 is not UTF-8"}, {`{{ html nil }}`, "error: html: argument 1"}},
	"js":   {{`{{ js "'é\x00" }}`, `\'é\u0000`}, {`{{ js "\U000e0001" }}`, "error: js: argument 1 has a character that js cannot escape"}, {`{{ js (b64dec "/w==") }}`, "error: js: argument 1 is not UTF-8"}}, "urlquery": {{`{{ urlquery "é&" }}{{ urlquery (b64dec "/w==") }}`, "%C3%A9%26%FF"}, {`{{ urlquery (list) }}`, "error: urlquery: argument 1"}},
}

// TestEachFunction: each has its row.
func TestEachFunction(t *testing.T) {
	if got, want := slices.Sorted(maps.Keys(functionCases)), slices.Sorted(maps.Keys(loadLibrary().all)); !slices.Equal(got, want) {
		t.Errorf("rows of %q, want %q", got, want)
	}
	for name, cases := range functionCases {
		for _, c := range cases {
			target, items := target(targets.FormatTemplate, sample()...)
			result, err := Render(target, c.template, items)
			if want, failed := strings.CutPrefix(c.want, "error: "); failed {
				if err == nil {
					t.Errorf("%s: %s = %q, want an error", name, c.template, result.Parts[""].Bytes())
				} else if !strings.Contains(err.Error(), want) {
					t.Errorf("%s: %s: error %v, want %s", name, c.template, err, want)
				}
			} else if err != nil || string(result.Parts[""].Bytes()) != c.want {
				t.Errorf("%s: %s = %q, %v; want %q", name, c.template, result.Parts[""].Bytes(), err, c.want)
			}
		}
	}
}

// TestFunctionsRefuseOtherTypes: each parameter of each function, and each number of
// arguments. The error names the function and the position.
func TestFunctionsRefuseOtherTypes(t *testing.T) {
	right := map[string]any{"any": "x", "bytes": "x", "text": "x", "scalar": "x", "printed": "x", "int": 1, "number": 1, "bool": true, "list": []any{"x"}, "dict": map[string]any{"x": "x"}}
	values := []any{nil, "x", 1, 1.5, true, []any{"x"}, map[string]any{"x": "x"}, templateSecret{}, jsonNumber{"1.5"}, []byte("x")}
	for name, f := range loadLibrary().all {
		call := (&run{work: work{left: maxWork}}).guard(f)
		params := strings.Fields(strings.ReplaceAll(f.params, "...", ""))
		var ok []any
		for _, kind := range params {
			ok = append(ok, right[kind])
		}
		variadic := strings.HasSuffix(f.params, "...")
		if _, err := call(ok[:max(len(ok)-2, 0)]...); (!variadic || len(ok) > 1) && (err == nil || !strings.Contains(err.Error(), name+": wrong number of arguments")) {
			t.Errorf("%s with too few arguments: %v", name, err)
		}
		if _, err := call(append(slices.Clone(ok), "x")...); !variadic && (err == nil || !strings.Contains(err.Error(), "wrong number of arguments")) {
			t.Errorf("%s with too many arguments: %v", name, err)
		}
		for i, kind := range params {
			for _, v := range values {
				if _, fault, _ := kinds[kind](v); fault == "" {
					continue
				}
				given := slices.Clone(ok)
				given[i] = v
				_, err := call(given...)
				if want := name + ": " + string(wrong(i, "")); err == nil || !strings.HasPrefix(err.Error(), want) {
					t.Errorf("%s with %#v: error %v, want %q", name, v, err, want)
				}
			}
		}
	}
}

// TestRemovedFunctions: what other programs offer names what to use, which exists.
func TestRemovedFunctions(t *testing.T) {
	for name, use := range replacements() {
		if loadLibrary().known[name] != nil {
			t.Errorf("%s is both removed and offered", name)
		}
		target, items := target(targets.FormatTemplate)
		if _, err := Render(target, "{{ "+name+" }}", items); err == nil || err.Error() != `template: g:1: function "`+name+`" not defined; use `+use {
			t.Errorf("function %s: %v", name, err)
		}
	}
	for _, name := range []string{"fromJson", "substr", "until", "kindIs"} {
		if loadLibrary().known[name] == nil {
			t.Errorf("%s is named instead of others, but not offered", name)
		}
	}
}

func TestFunctions(t *testing.T) {
	funcs := Functions()
	if !slices.IsSorted(funcs) || len(slices.Compact(slices.Clone(funcs))) != len(funcs) {
		t.Error("the list is not in order, or names a function twice")
	}
	for _, name := range []string{"secret", "b64enc", "b64dec", "upper"} {
		if !slices.Contains(funcs, name) {
			t.Errorf("%s is not listed", name)
		}
	}
}

// TestConditionsOfNumbers: a zero that is not written as 0 is no condition.
func TestConditionsOfNumbers(t *testing.T) {
	for text, want := range map[string]string{
		`{{ if fromJson "0" }}yes{{ else }}no{{ end }}`:                         "no",
		`{{ if fromJson "0.5" }}yes{{ end }}`:                                   "yes",
		`{{ if fromJson "-0" }}yes{{ end }}`:                                    "error",
		`{{ if false }}{{ else if fromJson "0e5" }}yes{{ end }}`:                "error",
		`{{ with fromJson "0.0" }}yes{{ end }}`:                                 "error",
		`{{ with $x := fromJson "1.0" }}{{ . }}{{ $x }}{{ end }}`:               "1.01.0",
		`{{ if and (fromJson "0.0") true }}yes{{ end }}`:                        "error",
		`{{ if or false (fromJson "0.0") }}yes{{ end }}`:                        "error",
		`{{ or "" "b" }}{{ and "a" "b" }}`:                                      "bb",
		`{{ if and false (fail "not reached") }}{{ end }}{{ or 1 (fail "x") }}`: "1",
		`{{ and (fromJson "1.5") (fromJson "2.5") }}`:                           "2.5",
	} {
		target, items := target(targets.FormatTemplate)
		result, err := Render(target, text, items)
		if got := string(result.Parts[""].Bytes()); (err != nil) != (want == "error") || err == nil && got != want {
			t.Errorf("%s = %q, %v; want %s", text, got, err, want)
		}
	}
}

// TestListsAreNotPrinted: nothing reads what Go prints of them.
func TestListsAreNotPrinted(t *testing.T) {
	for _, text := range []string{`{{ list 1 }}`, `{{ dict }}`, `{{ .SecretsMap }}`, `{{ .SecretsArray }}`, `{{ .SecretsMap.user }}`, `{{ index .SecretsArray 0 }}`, `{{ . }}`, `{{ fromJson "[null]" }}`, `{{ 1i }}`} {
		target, items := target(targets.FormatTemplate, sample()...)
		if result, err := Render(target, text, items); err == nil || !strings.Contains(err.Error(), "cannot be printed") {
			t.Errorf("%s = %q, %v", text, result.Parts[""].Bytes(), err)
		}
	}
}
