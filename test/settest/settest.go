// Package settest drives a set that rotates, as an operator does: it looks, commands and
// waits.
package settest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/secretsync/syncer/pkg/rotation"
	"github.com/secretsync/syncer/pkg/rotation/versions"
	"github.com/secretsync/syncer/test/proctest"
)

// Operator steers a set.
type Operator struct {
	T       testing.TB
	Steered rotation.Set
}

// Look returns the set; an empty one if it has not begun.
func (o Operator) Look(ctx context.Context) (*versions.Document, error) {
	held, err := o.Steered.Read(ctx)
	if err == nil && held.Document == nil {
		return versions.New("us"), nil
	}
	return held.Document, err
}

// Doc is Look, and ends the test if the set cannot be read.
func (o Operator) Doc() *versions.Document {
	o.T.Helper()
	doc, err := o.Look(context.Background())
	if err != nil {
		o.T.Fatal(err)
	}
	return doc
}

// Begin asks for a new version, once the command before was answered.
func (o Operator) Begin(ctx context.Context) error {
	for {
		err := o.Steered.SendCommand(ctx, versions.Command{Verb: "now", At: time.Now()})
		if !errors.Is(err, rotation.ErrPending) || ctx.Err() != nil {
			return err
		}
		Sleep(ctx)
	}
}

// Sleep is between two looks.
func Sleep(ctx context.Context) {
	select {
	case <-time.After(20 * time.Millisecond):
	case <-ctx.Done():
	}
}

// Until waits until the set is as it should be.
func (o Operator) Until(what string, is func(*versions.Document) bool) (doc *versions.Document) {
	o.T.Helper()
	defer func() {
		if o.T.Failed() && doc != nil {
			o.T.Logf("the set: %s", Told(doc))
		}
	}()
	proctest.Eventually(o.T, what, func() bool { doc = o.Doc(); return is(doc) })
	return doc
}

// Idle reports whether a set is idle with another primary than that.
func Idle(doc *versions.Document, not string) bool {
	primary, ok := doc.Primary()
	return ok && primary.ID != not && doc.Stage() == "idle"
}

// Idle waits until the set is idle with another primary than that, and returns it.
func (o Operator) Idle(not string) versions.Version {
	o.T.Helper()
	doc := o.Until(fmt.Sprintf("a set that is idle with another primary than %q", not), func(d *versions.Document) bool { return Idle(d, not) })
	primary, _ := doc.Primary()
	return primary
}

// Rotate begins a version, waits until the one before is gone, and returns the new
// primary.
func (o Operator) Rotate() versions.Version {
	o.T.Helper()
	old, _ := o.Doc().Primary()
	if err := o.Begin(context.Background()); err != nil {
		o.T.Fatal(err)
	}
	return o.Idle(old.ID)
}

// Told describes a set for the log of a test.
func Told(d *versions.Document) string {
	var text strings.Builder
	for _, v := range d.Versions {
		fmt.Fprintf(&text, "%s %s %q; ", v.ID, v.State, v.PartNames())
	}
	for _, e := range d.Log {
		text.WriteString(e.What + ", ")
	}
	return text.String()
}
