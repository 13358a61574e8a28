package rotation

import (
	"testing"
	"time"

	"github.com/secretsync/syncer/pkg/rotation/generate"
	"github.com/secretsync/syncer/pkg/rotation/versions"
	"github.com/secretsync/syncer/pkg/secret"
)

// TestBeforeCountsFromTheFirstEndOfTheCertificates is about a chain, in a part of
// whatever name.
func TestBeforeCountsFromTheFirstEndOfTheCertificates(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	certificate := func(days int) string {
		parts, err := generate.Config{X509: &generate.X509{Subject: "shop", Days: days}}.Parts(now, nil)
		if err != nil {
			t.Fatal(err)
		}
		return string(parts["crt"].Bytes())
	}
	parts := map[string]secret.Value{"chain": secret.New([]byte(certificate(90) + certificate(30))), "ca": secret.New([]byte(certificate(900))), "key": secret.New([]byte("k"))}
	by := versions.Entry{At: now}
	set := versions.New("").Make("one", parts, false, by).Promote("one", by)
	const day = 24 * time.Hour
	for name, c := range map[string]struct {
		Schedule
		want time.Duration
	}{
		"before alone":               {Schedule{Before: 10 * day}, 20 * day},
		"before, ahead of every":     {Schedule{Before: 10 * day, Every: 60 * day}, 20 * day},
		"every, at the latest":       {Schedule{Before: 10 * day, Every: 5 * day}, 5 * day},
		"certificates do not matter": {Schedule{Every: 60 * day}, 60 * day},
	} {
		got := c.findDue("shop", set).Sub(now)
		if least := c.want - c.Every/10; got < least || got > c.want {
			t.Errorf("%s: due in %v, want %v to %v", name, got, least, c.want)
		}
	}
}

func TestACertificateIsMadeAnewBeforeItExpires(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	set := s.keys(nil)
	set.Generate = generate.Config{X509: &generate.X509{Subject: "shop", Days: 1}}
	set.Schedule.Before = 24*time.Hour - 2*time.Second
	r, _ := s.rotator(s.client, "me", set)
	run(t, r)
	primary := func(not string) func(*versions.Document) bool {
		return func(d *versions.Document) bool {
			p, ok := d.Primary()
			return ok && p.ID != not
		}
	}
	first, _ := s.until("the first certificate", primary("")).Primary()
	second, _ := s.until("a second one", primary(first.ID)).Primary()
	if !second.Expires().After(first.Expires()) {
		t.Errorf("the second ends at %v, the first at %v", second.Expires(), first.Expires())
	}
}
