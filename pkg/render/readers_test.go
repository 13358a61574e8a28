package render

import (
	"bufio"
	"bytes"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// readEnvFile reads as docker run --env-file does, in the manner of all its
// versions: those that strip quotes around a value and those that do not must
// agree.
func readEnvFile(t *testing.T, content []byte) map[string]string {
	got := map[string]string{}
	scanner := bufio.NewScanner(bytes.NewReader(content))
	for scanner.Scan() {
		line := strings.TrimLeftFunc(scanner.Text(), unicode.IsSpace)
		if !utf8.ValidString(line) {
			t.Errorf("invalid UTF-8 in %.100q", line)
		}
		if line == "" || line[0] == '#' {
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		if !ok || name == "" || strings.ContainsAny(name, " \t") {
			t.Errorf("no variable in %.100q", line)
		}
		for _, quote := range []string{`"`, `'`} {
			if len(value) > 1 && strings.HasPrefix(value, quote) && strings.HasSuffix(value, quote) {
				t.Errorf("quotes around %.100q", value)
			}
		}
		got[name] = value
	}
	if err := scanner.Err(); err != nil {
		t.Error(err)
	}
	return got
}

// readQuotedProperties reads the quotes of format properties as a part of the
// value, and then takes them off.
func readQuotedProperties(t *testing.T, content []byte) map[string]string {
	got := readProperties(t, content)
	for alias, value := range got {
		if len(value) < 2 || value[0] != '"' || value[len(value)-1] != '"' {
			t.Errorf("no quotes around %.100q", value)
			continue
		}
		got[alias] = value[1 : len(value)-1]
	}
	return got
}

// readProperties reads what the documentation of java.util.Properties.load
// (Java 17) describes, from a UTF-8 Reader.
func readProperties(t *testing.T, content []byte) map[string]string {
	got := map[string]string{}
	var line []uint16
	units := append(utf16.Encode([]rune(string(content))), '\n')
	for i := 0; i < len(units); i++ {
		switch c := units[i]; c {
		case '\n', '\r':
			readProperty(t, line, got)
			line = nil
		case '\\':
			if i++; units[i] == '\n' || units[i] == '\r' {
				t.Error("a line goes on on the next one")
				continue
			}
			line = append(line, c, units[i])
		default:
			line = append(line, c)
		}
	}
	return got
}

func readProperty(t *testing.T, line []uint16, into map[string]string) {
	for len(line) > 0 && propertySpace(line[0]) {
		line = line[1:]
	}
	if len(line) == 0 || line[0] == '#' || line[0] == '!' {
		return
	}
	end := 0
	for end < len(line) && line[end] != '=' && line[end] != ':' && !propertySpace(line[end]) {
		if line[end] == '\\' {
			end++
		}
		end++
	}
	key, rest := line[:end], line[end:]
	separated := false
	for len(rest) > 0 && (propertySpace(rest[0]) || !separated && (rest[0] == '=' || rest[0] == ':')) {
		separated = separated || !propertySpace(rest[0])
		rest = rest[1:]
	}
	into[unescapeProperty(t, key)] = unescapeProperty(t, rest)
}

func propertySpace(c uint16) bool { return c == ' ' || c == '\t' || c == '\f' }

func unescapeProperty(t *testing.T, units []uint16) string {
	var out []uint16
	for i := 0; i < len(units); i++ {
		c := units[i]
		if c != '\\' {
			out = append(out, c)
			continue
		}
		i++
		switch units[i] {
		case 't':
			c = '\t'
		case 'n':
			c = '\n'
		case 'f':
			c = '\f'
		case 'r':
			c = '\r'
		case 'u':
			n, err := strconv.ParseUint(string(utf16.Decode(units[i+1:i+5])), 16, 16)
			if err != nil {
				t.Error(err)
			}
			c, i = uint16(n), i+4
		default:
			c = units[i]
		}
		out = append(out, c)
	}
	return string(utf16.Decode(out))
}
