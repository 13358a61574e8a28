package actuators

import (
	"strings"
	"testing"
	"time"

	"github.com/secretsync/syncer/pkg/rotation/versions"
)

// TestAMarkSurvivesItsComment whatever the set's id is.
func TestAMarkSurvivesItsComment(t *testing.T) {
	doc := &versions.Document{Identity: "4ID"}
	for _, set := range []string{"shop/db", `a "set" [of] \ 'all'`, "ä\nset"} {
		m := markOf(versions.Version{ID: "v1", Fence: "f1"}, accepted).of(set, doc)
		comment := m.in("of the shop")
		if got := readMark(comment); got != m || !strings.HasPrefix(comment, "of the shop [syncer version v1 fence f1 accepted] [of set ") {
			t.Errorf("%q is read as %+v", comment, got)
		}
		again := markOf(versions.Version{ID: "v2", Fence: "f2"}, revoked).of(set, doc)
		if got := again.in(comment); readMark(got) != again || strings.Count(got, "[") != strings.Count(comment, "[") {
			t.Errorf("%q became %q", comment, got)
		}
	}
	old := markOf(versions.Version{ID: "v1", Fence: "f1"}, accepted).of("shop/db", &versions.Document{})
	if got := old.in(""); got != "[syncer version v1 fence f1 accepted]" || readMark(got) != old {
		t.Errorf("without an identity it is %q", got)
	}
}

// TestWhoseAMarkIs says it of a set with the versions 2 and 3, of which 2 is retired.
func TestWhoseAMarkIs(t *testing.T) {
	id := func(n string) string { return "2026112" + n + "t000000" }
	doc := func(identity, claimed string) *versions.Document {
		return &versions.Document{Identity: identity, Claimed: claimed, Versions: []versions.Version{{ID: id("3"), Fence: id("3")}, {ID: id("2"), Fence: id("2")}}}
	}
	ours, earlier, other := owner{"shop/db", "ours", "T"}, owner{"shop/db", "earlier", "T"}, owner{"shop/other", "ours", "T"}
	for name, c := range map[string]struct {
		m      mark
		doc    *versions.Document
		barred string // what apply says; "" if it may
		stands bool   // revoke leaves the role alone
	}{
		"nobody's":                            {mark{}, doc("ours", ""), "", false},
		"nobody's, before the set began":      {mark{}, versions.New("us"), "", false},
		"ours":                                {mark{id("2"), id("2"), accepted, ours}, doc("ours", ""), "", false},
		"ours, no longer remembered":          {mark{id("1"), id("1"), revoked, ours}, doc("ours", ""), "", false},
		"ours, unknown as after a restore":    {mark{id("4"), id("4"), accepted, ours}, doc("ours", ""), "version " + id("4") + " of a later state of the set, as after a restored backup, which is accepted since T", false},
		"ours, with a fence that is unknown":  {mark{id("2"), id("4"), accepted, ours}, doc("ours", ""), "of a later state of the set", false},
		"another set's":                       {mark{id("2"), id("2"), accepted, other}, doc("ours", ""), "version " + id("2") + " of the set shop/other, which is accepted since T", true},
		"an earlier set's":                    {mark{id("1"), id("1"), accepted, earlier}, doc("ours", ""), "version " + id("1") + " of an earlier set shop/db, which is accepted since T", true},
		"an earlier set's, before ours began": {mark{id("1"), id("1"), accepted, earlier}, versions.New("us"), "of an earlier set shop/db", true},
		"after a rollback of Syncer":          {mark{id("2"), id("2"), accepted, earlier}, doc("ours", ""), "", false},
		"with a part removed":                 {mark{id("2"), id("2"), accepted, owner{}}, doc("ours", ""), "version " + id("2") + " of an unknown set", true},
		"claimed since":                       {mark{id("2"), id("2"), accepted, other}, doc("ours", id("2")), "", true},
		"claimed, then another set came":      {mark{id("4"), id("4"), accepted, other}, doc("ours", id("3")), "of the set shop/other", true},
		"restored, and claimed since":         {mark{id("4"), id("4"), accepted, ours}, doc("ours", id("5")), "", false},
	} {
		err := c.m.barred("shop/db", c.doc)
		if c.barred == "" && err != nil || c.barred != "" && (err == nil || !strings.Contains(err.Error(), c.barred) || !strings.Contains(err.Error(), "syncer rotate claim shop/db")) {
			t.Errorf("%s: apply says %v", name, err)
		}
		if stands := c.m.foreign("shop/db", c.doc) != nil; stands != c.stands {
			t.Errorf("%s: revoke leaves it alone: %v", name, stands)
		}
	}
}

// TestASealBarsOtherSets: only a claim that is later than the seal takes a user over.
func TestASealBarsOtherSets(t *testing.T) {
	of := func(set, identity string) seal { return sealOf(set, &versions.Document{Identity: identity}) }
	now := time.Now()
	for name, c := range map[string]struct {
		found   seal
		claimed string
		free    bool
	}{
		"no seal":                     {free: true},
		"ours":                        {found: of("shop/db", "ours"), free: true},
		"another set":                 {found: of("shop/other", "ours")},
		"an earlier set":              {found: of("shop/db", "earlier")},
		"another set, claimed before": {found: of("shop/other", "theirs"), claimed: versions.IDAt(now.Add(-time.Hour))},
		"another set, claimed later":  {found: of("shop/other", "theirs"), claimed: versions.IDAt(now.Add(time.Hour)), free: true},
	} {
		err := c.found.barred("shop/db", &versions.Document{Identity: "ours", Claimed: c.claimed})
		if c.free != (err == nil) {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil && !strings.Contains(err.Error(), "syncer rotate claim shop/db") {
			t.Errorf("%s: %v does not say what to do", name, err)
		}
	}
	if s := of("shop/db", "ours"); !isSeal(s[:]) || isSeal(make([]byte, len(s))) || isSeal(s[1:]) || now.Sub(s.since()).Abs() > time.Minute {
		t.Errorf("%x is since %v", s, s.since())
	}
}
