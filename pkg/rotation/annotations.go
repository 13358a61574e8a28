package rotation

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/secretsync/syncer/internal/lazyregexp"
	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/rotation/generate"
)

// The annotations for Conjur's own rotators, besides conjur.RotatorAnnotation.
const (
	ttlAnnotation    = "rotation/ttl"
	lengthAnnotation = "rotation/postgresql/password/length"

	postgresqlRotator = "postgresql/password"
)

// wanted is the settings that annotations request for a set. The zero wanted requests
// nothing.
type wanted struct {
	every  time.Duration
	length int // of a password
}

// and returns settings that satisfy both: the shorter interval and the longer password.
func (w wanted) and(other wanted) wanted {
	if w.every == 0 || other.every > 0 && other.every < w.every {
		w.every = other.every
	}
	w.length = max(w.length, other.length)
	return w
}

// fill sets the values of the set that its definition leaves open.
func (w wanted) fill(set *Plan) {
	if w.every > 0 && set.Schedule.General {
		set.Schedule.Every = w.every
	}
	if p := set.Generate.Password; w.length > 0 && p != nil && p.Length == 0 {
		long := *p
		long.Length = w.length
		set.Generate.Password = &long
	}
}

// parseAnnotations reads the annotations for Conjur's own rotators and returns all faults
// in them. Without the annotation for a rotator, the others have no meaning.
func parseAnnotations(about conjur.Resource) (w wanted, problems []string) {
	add := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	switch rotator := about.Annotations[conjur.RotatorAnnotation]; rotator {
	case "":
		return w, nil
	case postgresqlRotator:
	default:
		add("%s is %.100q, which Syncer does not know; it knows %q", conjur.RotatorAnnotation, rotator, postgresqlRotator)
	}
	if about.Expires {
		add(ownRotator)
	}
	if ttl, ok := about.Annotations[ttlAnnotation]; ok {
		if w.every, ok = parseDuration(ttl); !ok {
			add("%s is %.100q; write an ISO 8601 duration from a second to a hundred years, such as P30D or PT12H", ttlAnnotation, ttl)
		}
	}
	if length, ok := about.Annotations[lengthAnnotation]; ok {
		n, err := strconv.Atoi(length)
		if err != nil || n == 0 || (generate.Config{Password: &generate.Password{Length: n}}).Check() != nil {
			add("%s is %.100q; write a number from 16 to 256", lengthAnnotation, length)
		}
		w.length = n
	}
	return w, problems
}

var durationForm = lazyregexp.New(`^P(?:(\d+)Y)?(?:(\d+)M)?(?:(\d+)W)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?)?$`)

// parseDuration reads an ISO 8601 duration. A year has 365 days, a month 30.
func parseDuration(text string) (total time.Duration, ok bool) {
	const day = 24 * time.Hour
	const longest = 100 * 365 * day
	groups := durationForm().FindStringSubmatch(text)
	if groups == nil {
		return 0, false
	}
	for i, unit := range []time.Duration{365 * day, 30 * day, 7 * day, day, time.Hour, time.Minute, time.Second} {
		if groups[i+1] == "" {
			continue
		}
		n, err := strconv.ParseUint(groups[i+1], 10, 64)
		if err != nil || n > uint64(longest/unit) {
			return 0, false
		}
		if total += time.Duration(n) * unit; total > longest {
			return 0, false
		}
	}
	return total, total >= time.Second
}

// Conjur's own rotator looks about once a second for annotated variables whose newest
// value has no expiry, or a past one. It changes each of them, in the database and in
// Conjur, and sets an expiry. Every write by anybody else clears the expiry. Therefore
// each write by Syncer would make that rotator change the value again.

// ownRotator is the problem of a published variable that has an expiry.
const ownRotator = "the server's own rotator has changed it; disable that rotator, then clear the variable's expiry: POST /secrets/ACCOUNT/variable/ID?expirations"

// readWanted returns the settings that the annotations of variables request together, or
// the faults in them.
func readWanted(ctx context.Context, client Client, ids []string) (all wanted, unclear string, err error) {
	var problems []string
	for _, id := range ids {
		about, reading := client.Resource(ctx, nil, id)
		if reading.Form != conjur.Given {
			return all, "", fmt.Errorf("cannot read the annotations of %q: %w", id, reading.Err)
		}
		w, wrong := parseAnnotations(about)
		for _, problem := range wrong {
			problems = append(problems, fmt.Sprintf("%q: %s", id, problem))
		}
		all = all.and(w)
	}
	return all, strings.Join(problems, "; "), nil
}
