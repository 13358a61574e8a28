package render

import (
	"fmt"
	"strings"
)

// mostArguments is how many bytes the arguments of a function may have
// together, as size counts them, unless argumentBounds says otherwise.
const mostArguments = 1 << 20

// argumentBounds is how many bytes the arguments of a function may have
// together, so that no call costs more than 50 ms and makes more than 20 MiB.
func argumentBounds() map[string]int {
	bounds := map[string]int{}
	for _, row := range []struct {
		most      int
		functions string
	}{
		// They only look at text, or copy it once.
		{maxResult, `adler32sum b64dec b64enc contains default empty eq ge gt
			hasPrefix hasSuffix le lt ne repeat secret sha1sum sha256sum
			sha512sum substr ternary trim trimPrefix trimSuffix trunc`},
		// They write several bytes for one.
		{512 << 10, `html js printf urlquery`},
		// They walk lists and maps, or write something for each element.
		{256 << 10, `cat deepCopy deepEqual dig merge
			mergeOverwrite mustDeepCopy mustMerge mustMergeOverwrite
			mustToJson mustToPrettyJson mustToRawJson mustUniq mustWithout
			quote squote toJson toPrettyJson toRawJson toString
			uniq without`},
		// What they make of a byte may be a list or a map, or an error.
		{64 << 10, `fromJson mustFromJson urlParse`},
		// They parse numbers.
		{4 << 10, `add add1 add1f addf atoi biggest ceil div divf float64 floor
			int int64 max maxf min minf mod mul mulf round sub subf toDecimal`},
		// Each constraint is taken apart by regular expressions.
		{256, `semverCompare`},
	} {
		for name := range strings.FieldsSeq(row.functions) {
			bounds[name] = row.most
		}
	}
	return bounds
}

// tooMuch is the error of arguments that have more than most bytes.
func tooMuch(name string, most int) error {
	return &limitError{fmt.Sprintf("the arguments of %s have more than %d bytes", name, most)}
}
