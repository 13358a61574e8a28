package joined_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/secretsync/syncer/internal/joined"
)

func TestErrors(t *testing.T) {
	a, b, c := errors.New("a"), errors.New("b"), errors.New("c")
	for _, test := range []struct {
		err  error
		want []error
	}{
		{nil, nil},
		{a, []error{a}},
		{errors.Join(a, errors.Join(b, c)), []error{a, b, c}},
	} {
		if got := joined.Errors(test.err); !slices.Equal(got, test.want) {
			t.Errorf("Errors(%v) = %v, want %v", test.err, got, test.want)
		}
	}
}
