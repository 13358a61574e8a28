package architecture

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	codeBlock = regexp.MustCompile("(?ms)^```.*?^```")
	heading   = regexp.MustCompile(`(?m)^#+ (.*)$`)
	link      = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	noAnchor  = regexp.MustCompile(`[^\p{L}\p{N}_\- ]`)
)

// TestLinksLeadSomewhere: each relative link of a page names a file that exists,
// and a heading of it, if it names one.
func TestLinksLeadSomewhere(t *testing.T) {
	root := filepath.Join("..", "..")
	prose := func(path string) string {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return codeBlock.ReplaceAllString(string(text), "")
	}
	err := filepath.WalkDir(root, func(page string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && entry.Name() == ".git" {
			return fs.SkipDir
		}
		if filepath.Ext(page) != ".md" || strings.Contains(page, "testdata") {
			return nil
		}
		for _, found := range link.FindAllStringSubmatch(prose(page), -1) {
			path, anchor, _ := strings.Cut(found[1], "#")
			if strings.Contains(path, "://") || strings.HasPrefix(path, "mailto:") {
				continue
			}
			target := page
			if path != "" {
				target = filepath.Join(filepath.Dir(page), path)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s, which does not exist", page, found[1])
			} else if anchor != "" && !hasAnchor(prose(target), anchor) {
				t.Errorf("%s links to %s, and no heading has that anchor", page, found[1])
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// hasAnchor reports whether a heading of the page gets the anchor on GitHub: in
// lower case, without punctuation, and with hyphens for spaces.
func hasAnchor(page, anchor string) bool {
	for _, found := range heading.FindAllStringSubmatch(page, -1) {
		if strings.ReplaceAll(noAnchor.ReplaceAllString(strings.ToLower(found[1]), ""), " ", "-") == anchor {
			return true
		}
	}
	return false
}
