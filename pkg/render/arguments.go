package render

import (
	"fmt"
	"strings"
)

// mostArguments bounds the arguments of a function together, in bytes as size
// counts them. argumentBounds lists exceptions.
const mostArguments = 1 << 20

// argumentBounds returns the limits of arguments per function, in bytes. They
// ensure that no call takes more than 50 ms or produces more than 20 MiB.
func argumentBounds() map[string]int {
	bounds := map[string]int{}
	for _, row := range []struct {
		most      int
		functions string
	}{
		// They only read text, or copy it once.
		{maxResult, `adler32sum b64dec b64enc contains default empty eq ge gt
			hasPrefix hasSuffix le lt ne repeat secret sha1sum sha256sum
			sha512sum substr ternary trim trimPrefix trimSuffix trunc`},
		// They produce several bytes for one.
		{512 << 10, `html js printf urlquery`},
		// They walk lists and maps, or produce output for each element.
		{256 << 10, `cat deepCopy deepEqual dig merge
			mergeOverwrite mustDeepCopy mustMerge mustMergeOverwrite
			mustToJson mustToPrettyJson mustToRawJson mustUniq mustWithout
			quote squote toJson toPrettyJson toRawJson toString
			uniq without`},
		// They can produce a list, a map or an error for each byte.
		{64 << 10, `fromJson mustFromJson urlParse`},
		// They parse numbers.
		{4 << 10, `add add1 add1f addf atoi biggest ceil div divf float64 floor
			int int64 max maxf min minf mod mul mulf round sub subf toDecimal`},
		// Regular expressions parse each constraint.
		{256, `semverCompare`},
	} {
		for name := range strings.FieldsSeq(row.functions) {
			bounds[name] = row.most
		}
	}
	return bounds
}

// tooMuch returns the error for arguments that exceed most bytes.
func tooMuch(name string, most int) error {
	return &limitError{fmt.Sprintf("the arguments of %s have more than %d bytes", name, most)}
}
