package tool

import (
	"bytes"
	"testing"

	"github.com/secretsync/syncer/config"
)

func TestAProblemOfSeveralLinesIsOneLine(t *testing.T) {
	var out bytes.Buffer
	v := config.Validation{Warnings: []config.Problem{{Key: "key", Message: "one\ntwo\n"}}}
	if err := (&Tool{Err: &out}).write(v); err != nil || out.String() != "warning: key: one; two\n" {
		t.Errorf("%v, printed %q", err, out.String())
	}
}
