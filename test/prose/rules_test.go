package prose

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// limit is how many words a sentence may have.
const limit = 25

// A rule finds one construction that readers had to read twice.
type rule struct {
	name string
	// The first group of the pattern, if it has one, is the word before the
	// construction; a word in except permits the construction.
	pattern *regexp.Regexp
	except  string
	// before breaks the rule, after says the same in plain English.
	before, after string
}

var rules = []rule{
	{
		name:    "name the thing instead of a noun made of what or whoever",
		pattern: regexp.MustCompile(`\b(?:[Ww]hat|[Ww]hoever) (?:is|was|has|had|are|were|it|they|somebody|nobody|comes|came|begins|stands|holds|goes|went|must|may|can|does|did|makes|takes|needs|reads)\b[^?]*$`),
		before:  "What is unknown changes nothing.",
		after:   "If Conjur gives no clear answer, nothing changes.",
	},
	{
		name:    "use a verb instead of has something done",
		pattern: regexp.MustCompile(`\b(?:has|have|had|having) (?:it|them|a|an|the|all|each|one|somebody|others) (?:\w+ ){0,3}?(?:made|read|written|taken|done|sent|kept|removed|restarted|renewed|rotated|started|delivered|stored|checked)(?:[.,;:]| (?:by|with|and|again|anew|when|if)\b|$)`),
		before:  "It has the Pods restarted.",
		after:   "It restarts the Pods.",
	},
	{
		name:    "use must or a plain verb instead of is to be",
		pattern: regexp.MustCompile(`\b(?:is|are|was|were) to (?:be|have|do)\b`),
		before:  "The file is to be removed.",
		after:   "Syncer removes the file.",
	},
	{
		name:    "use a separate one instead of one of its own",
		pattern: regexp.MustCompile(`\bof (?:its|their|one's|our) own\b`),
		before:  "Each set has a queue of its own.",
		after:   "Each set has a separate queue.",
	},
	{
		name:    "give the period or the condition instead of so long",
		pattern: regexp.MustCompile(`\b(?:[Ss]o long|as long as that)\b`),
		before:  "So long the file stays.",
		after:   "The file stays until the grace period ends.",
	},
	{
		name:    "repeat the noun after by",
		pattern: regexp.MustCompile(`\bby (?:that|this|which)(?:[.,;:)]| (?:is|are|can|may|must|the|it|they)\b|$)`),
		before:  "A timer starts, and by that the check.",
		after:   "A timer starts the check.",
	},
	{
		name:    "negate the verb instead of nor",
		pattern: regexp.MustCompile(`\b[Nn]or (?:is|does|do|are|has|have|can|may|will)\b`),
		before:  "It is not delivered, nor is it removed.",
		after:   "It is not delivered, and not removed.",
	},
	{
		name:    "negate the verb instead of the noun",
		pattern: regexp.MustCompile(`(?:^|(\w+) )(?:is|are|was|were) no (\w+)\b`),
		except:  "there There longer more",
		before:  "A folder is no key.",
		after:   "A folder is not a key.",
	},
	{
		name:    "use instead of",
		pattern: regexp.MustCompile(`\bin (?:the )?place of\b`),
		before:  "It reads the file in the place of the variable.",
		after:   "It reads the file instead of the variable.",
	},
	{
		name:    "write contractions out",
		pattern: regexp.MustCompile(`\b(?i:\w+n't|it's|that's|you'll|you're|we're|they're|there's|let's)(?:[^\w]|$)`),
		before:  "The file isn't there.",
		after:   "The file is not there.",
	},
	{
		name:    "use American spelling",
		pattern: regexp.MustCompile(`\b(?i:behaviours?|colours?|favour\w*|honour\w*|neighbour\w*|centres?|cancelled|cancelling|\w{3,}(?:rganis|uthoris|ecognis|itialis|inimis|aximis|ynchronis)(?:e|es|ed|ing|ation))\b`),
		before:  "The request was cancelled.",
		after:   "The request was canceled.",
	},
}

// brokenBy returns the rules that a sentence breaks.
func brokenBy(sentence string, words int) (broken []rule) {
	if words > limit {
		broken = append(broken, rule{name: "one idea a sentence, and at most 25 words", before: "a long sentence", after: "two short ones, or a list"})
	}
	for _, r := range rules {
		for _, found := range r.pattern.FindAllStringSubmatch(sentence, -1) {
			permitted := func(word string) bool { return slices.Contains(strings.Fields(r.except), word) }
			if !slices.ContainsFunc(found[1:], permitted) {
				broken = append(broken, r)
				break
			}
		}
	}
	return broken
}

// TestRules: each rule finds its own example, and no rule objects to the better one.
func TestRules(t *testing.T) {
	for _, r := range rules {
		broken := brokenBy(r.before, 1)
		if len(broken) != 1 || broken[0].name != r.name {
			t.Errorf("%q breaks %v, want only %q", r.before, broken, r.name)
		}
		if broken := brokenBy(r.after, limit); len(broken) != 0 {
			t.Errorf("%q breaks %v", r.after, broken)
		}
	}
	if broken := brokenBy("A sentence.", limit+1); len(broken) != 1 {
		t.Errorf("a long sentence breaks %v", broken)
	}
}
