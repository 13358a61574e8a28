package render

import (
	"cmp"
	"math"
	"reflect"
	"strconv"
	"strings"
)

// jsonNumber is a number of a JSON text, with its digits as written. A whole number that an
// int writes the same way is an int instead.
type jsonNumber struct{ text string }

func (n jsonNumber) String() string               { return n.text }
func (n jsonNumber) MarshalJSON() ([]byte, error) { return []byte(n.text), nil }

// numberOf returns the value for a number of a JSON text.
func numberOf(text string) any {
	if n, err := strconv.Atoi(text); err == nil && strconv.Itoa(n) == text {
		return n
	}
	return jsonNumber{text}
}

// numberFunctions calculate with whole numbers of 64 bits. Text counts as a number if it
// consists of digits, because all secrets are text.
func numberFunctions() []function {
	fold := func(name string, do func(a, b int) (int, bool)) function {
		return function{name: name, params: "number number number...", most: mostNumeric, call: func(_ *run, a args) any {
			sum := a.int(0)
			for i := range a[1:] {
				var ok bool
				if sum, ok = do(sum, a.int(i+1)); !ok {
					panic(failure("the result has more than 64 bits"))
				}
			}
			return sum
		}}
	}
	return []function{
		fold("add", func(a, b int) (int, bool) { return a + b, (a+b > a) == (b > 0) }),
		fold("mul", func(a, b int) (int, bool) {
			c := a * b
			return c, a == 0 || c/a == b && (a != -1 || b != math.MinInt)
		}),
		fold("max", func(a, b int) (int, bool) { return max(a, b), true }),
		fold("min", func(a, b int) (int, bool) { return min(a, b), true }),
		{name: "sub", params: "number number", most: mostNumeric, call: func(_ *run, a args) any {
			x, y := a.int(0), a.int(1)
			if (x-y < x) != (y > 0) {
				panic(failure("the result has more than 64 bits"))
			}
			return x - y
		}},
		{name: "div", params: "number number", most: mostNumeric, call: func(_ *run, a args) any { divides(a); return a.int(0) / a.int(1) }},
		{name: "mod", params: "number number", most: mostNumeric, call: func(_ *run, a args) any { divides(a); return a.int(0) % a.int(1) }},
		{name: "atoi", params: "bytes", most: mostNumeric, call: func(_ *run, a args) any {
			n, ok := integerOf(a.text(0))
			if !ok {
				panic(wrong(0, "is not a whole number of at most 64 bits"))
			}
			return n
		}},
		{name: "int", params: "number", most: mostNumeric, call: func(_ *run, a args) any { return a.int(0) }},
	}
}

func divides(a args) {
	if a.int(1) == 0 {
		panic(wrong(1, "is zero"))
	}
	if a.int(0) == math.MinInt && a.int(1) == -1 {
		panic(failure("the result has more than 64 bits"))
	}
}

// integer returns a value of a template that is a whole number.
func integer(v any) (int, bool) {
	if n, ok := v.(jsonNumber); ok {
		i, err := strconv.Atoi(n.text) // such as -0
		return i, err == nil
	}
	value := reflect.ValueOf(v)
	switch {
	case value.IsValid() && value.CanInt():
		return int(value.Int()), true
	case value.IsValid() && value.CanUint() && value.Uint() <= math.MaxInt:
		return int(value.Uint()), true
	}
	return 0, false
}

// integerOf is integer, also for text that consists of digits after an optional minus.
func integerOf(v any) (int, bool) {
	text, ok := v.(string)
	if !ok {
		return integer(v)
	}
	if strings.HasPrefix(text, "+") {
		return 0, false
	}
	n, err := strconv.Atoi(text)
	return n, err == nil
}

// scalar returns the text that a template prints for text, a number or a Boolean.
func scalar(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case jsonNumber:
		return v.text, true
	case bool:
		return strconv.FormatBool(v), true
	case float64: // a literal of the template
		return strconv.FormatFloat(v, 'f', -1, 64), true
	}
	switch value := reflect.ValueOf(v); {
	case !value.IsValid():
		return "", false
	case value.CanInt():
		return strconv.FormatInt(value.Int(), 10), true
	case value.CanUint():
		return strconv.FormatUint(value.Uint(), 10), true
	}
	return "", false
}

// decimal is a number of any size: 0.digits times ten to the power of exp. digits neither
// begins nor ends with 0; none means zero.
type decimal struct {
	negative bool
	digits   string
	exp      int
}

// decimalOf returns a number of a template exactly. ok is false for all else, and for
// exponents of more than nine digits.
func decimalOf(v any) (d decimal, ok bool) {
	switch v.(type) {
	case string, bool:
		return d, false
	}
	text, ok := scalar(v)
	if !ok {
		return d, false
	}
	mantissa, exponent, _ := strings.Cut(strings.ToLower(text), "e")
	if exponent != "" {
		n, err := strconv.Atoi(exponent)
		if err != nil || n > 999_999_999 || n < -999_999_999 {
			return d, false
		}
		d.exp = n
	}
	mantissa, d.negative = strings.CutPrefix(mantissa, "-")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	d.digits = whole + fraction
	d.exp += len(whole)
	significant := strings.TrimLeft(d.digits, "0")
	d.exp -= len(d.digits) - len(significant)
	if d.digits = strings.TrimRight(significant, "0"); d.digits == "" {
		d = decimal{}
	}
	return d, true
}

// compareDecimals orders two numbers.
func compareDecimals(a, b decimal) int {
	if a.negative != b.negative {
		if a.negative {
			return -1
		}
		return 1
	}
	order := 0
	switch {
	case a.digits == "" || b.digits == "":
		order = cmp.Compare(len(a.digits), len(b.digits))
	case a.exp != b.exp:
		order = cmp.Compare(a.exp, b.exp)
	default:
		order = strings.Compare(a.digits, b.digits)
	}
	if a.negative {
		return -order
	}
	return order
}
