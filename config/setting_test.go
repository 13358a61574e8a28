package config

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/secretsync/syncer/pkg/targets"
)

// everySetting calls each with all settings, by their paths.
func everySetting(prefix string, table []setting, each func(path string, s setting)) {
	for _, s := range table {
		each(prefix+s.name, s)
		everySetting(prefix+s.name+".", s.items, each)
	}
}

// TestTagsAreThoseOfSettings, which the compiler does not see.
func TestTagsAreThoseOfSettings(t *testing.T) {
	known := strings.Fields("name annotation env kind scope section noun allowed true min max least default follows is in only without identity json")
	flags := strings.Fields("short lenient required envOnly credential later")
	tag := regexp.MustCompile(`([a-z]+):("(?:[^"\\]|\\.)*")`)
	everySetting("", fileSettings(), func(path string, s setting) {
		for _, m := range tag.FindAllStringSubmatch(string(s.tag), -1) {
			text, err := strconv.Unquote(m[2])
			switch m[1] {
			case "min", "max":
				_, err = strconv.Atoi(text)
			case "least":
				_, err = time.ParseDuration(text)
			case "is":
				if i := slices.IndexFunc(strings.Fields(text), func(flag string) bool { return !slices.Contains(flags, flag) }); i >= 0 {
					t.Errorf("%s: %q has an unknown flag", path, text)
				}
			}
			if err != nil || !slices.Contains(known, m[1]) {
				t.Errorf("%s: the tag %s: %v", path, m[0], err)
			}
		}
		if strings.TrimSpace(tag.ReplaceAllString(string(s.tag), "")) != "" || s.scope < ScopeNone {
			t.Errorf("%s: the tags are %s", path, s.tag)
		}
		if _, ok := kinds[s.kind]; !ok && !slices.Contains([]kind{kindText, kindInteger, kindDuration, kindChoice, kindPermissions, kindMap}, s.kind) {
			t.Errorf("%s: the kind %s", path, s.kind)
		}
	})
}

// TestBoundsOfSettings: each bound that a tag declares, for Load and for the schema.
func TestBoundsOfSettings(t *testing.T) {
	bounds := 0
	check := func(path string, s setting, text string, good bool) {
		bounds++
		schema := true
		if pattern, ok := tooShort[s.least]; ok {
			schema = !regexp.MustCompile(pattern).MatchString(text)
		}
		if err := s.checkText(text); (err == nil) != good || good && !schema {
			t.Errorf("%s: %s: %v; the schema accepts it: %t", path, text, err, schema)
		}
	}
	everySetting("", fileSettings(), func(path string, s setting) {
		for less := -1; less <= 1; less++ {
			switch s.kind {
			case kindInteger:
				check(path, s, strconv.Itoa(s.min+less), less >= 0)
				if s.max != 0 {
					check(path, s, strconv.Itoa(s.max+less), less <= 0)
				}
			case kindPercent:
				check(path, s, strconv.Itoa(less)+"%", less >= 0)
				check(path, s, strconv.Itoa(100+less), less <= 0)
			case kindDuration, kindPeriod:
				check(path, s, (s.least + time.Duration(less)).String(), less >= 0)
			}
		}
	})
	if bounds < 100 {
		t.Errorf("only %d texts were checked", bounds)
	}
}

// TestNamesInTheCodeAreThoseOfSettings: a mistyped name would be that of a setting
// that is never set.
func TestNamesInTheCodeAreThoseOfSettings(t *testing.T) {
	known := map[string]bool{
		"conjur.authnType": true, "conjur.certificates": true, "kubernetes.byLabel": true, "rotation.login": true, // which are only shown
		"kubernetes.io": true, // a claim
	}
	everySetting("", fileSettings(), func(_ string, s setting) { known[s.name] = true })
	// Names are keys of an item, arguments of what looks one up, and texts with a dot.
	name := regexp.MustCompile(`(?:(?:\[|[kK]ey\(|find\(.*, |setting\(|names\(|Key\(.*, |own\(id, )"([a-z][a-zA-Z0-9]*)"|"([a-z0-9]+(?:\.[a-zA-Z0-9]+)+)")`)
	comment := regexp.MustCompile(`(?m)//.*$`)
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") || file == "setting.go" { // which names tags
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range name.FindAllStringSubmatch(comment.ReplaceAllString(string(text), ""), -1) {
			if found++; !known[m[1]+m[2]] {
				t.Errorf("%s: %s is the name of no setting", file, m[0])
			}
		}
	}
	if found < 100 {
		t.Errorf("%d names were found", found)
	}
}

func TestFormatsAreThoseOfTargets(t *testing.T) {
	var names []string
	for _, f := range targets.Formats() {
		names = append(names, string(f))
	}
	format, _ := find(groupSettings(), "format")
	if !slices.Equal(format.allowed, names) || format.def != names[0] {
		t.Errorf("files have %q, want %q", format.allowed, names)
	}
	key, _ := find(settingsOf(reflect.TypeFor[dataKey]()), "format")
	if want := slices.DeleteFunc(names, func(name string) bool { return name == string(targets.FormatDirectory) }); !slices.Equal(key.allowed, want) {
		t.Errorf("data keys have %q, want %q", key.allowed, want)
	}
}

// TestConstantsAreThoseOfTags, which others use too.
func TestConstantsAreThoseOfTags(t *testing.T) {
	inbox, _ := find(fileSettings(), "conjur.clientCertPath")
	address, _ := find(fileSettings(), "server.address")
	if inbox.def != DefaultInbox || inbox.env != InboxVariable || !strings.HasPrefix(address.follows, defaultServerAddress+" ") {
		t.Errorf("the tags are %s and %s", inbox.tag, address.tag)
	}
}
