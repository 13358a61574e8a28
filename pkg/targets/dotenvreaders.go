package targets

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// dotenvReader says which written forms of a value a reader of the format dotenv reads
// as another value. The rules cover the forms that the package render writes: a value in
// single quotes, one in double quotes with escapes, and one without quotes. In doubt, a
// rule counts a form as misread.
type dotenvReader struct {
	name string
	// escapes are the characters that the reader accepts after a backslash in double
	// quotes.
	escapes string
	// misreads is a regular expression for the written form, with its quotes.
	misreads string
}

// Parts of misreads.
const (
	nothing  = `^\z`
	invalid  = `\x{FFFD}`            // bytes that are not UTF-8, or their replacement
	unquoted = `^[^'"]`              // a value without quotes
	comment  = invalid + `|^[^'"]*#` // a number sign in such a value
)

// dotenvReaders were compared with the readers themselves. Those that execute commands in
// values get no form in which they could.
var dotenvReaders = []dotenvReader{
	{"godotenv", "\"\\`$nr", nothing},
	{"npm-dotenv", "nr", comment},
	{"python-dotenv", `"\nr`, invalid + `|\$\{[^}]*\}|^'.*\\\\`},
	{"shell", "\"\\`$", unquoted},
	{"systemd", "\"\\`$", invalid + `|\p{Cn}|` + unquoted},
	{"node", "n", comment},
	{"compose", `"\$nr`, invalid},
	{"phpdotenv", `"\$nr`, comment + `|^'.*(\n|=")|\n.*="$`},
	{"symfony", `"\$nr`, invalid + `|^#|^[^'"]*\\\\|^".*(\\\\[nr]|\\\\\\"|\$[(}])`},
	{"bun", "$nr", comment + `|^'.*(\\\$|\$[0-9A-Za-z_{])`},
	{"dotenvx", "$nr", comment + `|^".*\$\(`},
	{"dotenv-expand", "$nr", comment + `|^'.*(\\\$|\$[A-Za-z_{])|\$\(`},
}

// DotenvReaders lists the known readers of the format dotenv.
func DotenvReaders() (names []string) {
	for _, r := range dotenvReaders {
		names = append(names, r.name)
	}
	return names
}

// CheckDotenvReaders returns the problem with the readers of a target's file.
func (t *Target) CheckDotenvReaders() error {
	for _, name := range t.DotenvReaders {
		if !slices.Contains(DotenvReaders(), name) {
			return fmt.Errorf("%.200q is not a reader of dotenv that Syncer knows; use some of %s", name, strings.Join(DotenvReaders(), ", "))
		}
	}
	if len(t.DotenvReaders) > 0 && t.Format != FormatDotenv {
		return fmt.Errorf("not used by the format %s; set the format to dotenv or remove it", t.Format)
	}
	return nil
}

var misreading = sync.OnceValue(func() map[string]*regexp.Regexp {
	compiled := map[string]*regexp.Regexp{}
	for _, r := range dotenvReaders {
		compiled[r.name] = regexp.MustCompile("(?s)" + r.misreads)
	}
	return compiled
})

// MisreadsDotenv reports whether a known reader reads the written form of a value as
// another value. The reader must be known, and the written form not empty.
func MisreadsDotenv(reader string, written []byte) bool {
	i := slices.IndexFunc(dotenvReaders, func(r dotenvReader) bool { return r.name == reader })
	for at := 0; written[0] == '"' && at < len(written)-1; at++ {
		if written[at] == '\\' {
			if at++; strings.IndexByte(dotenvReaders[i].escapes, written[at]) < 0 {
				return true
			}
		}
	}
	return misreading()[reader].Match(written)
}
