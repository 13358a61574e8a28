package view

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/conjur/variables"
	"github.com/secretsync/syncer/pkg/sinks"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/workers"
)

// TestOwes_decidesByWhoseMistakeItIs: a Secret counts if Conjur or the API server does not
// answer. An answer that may mean a mistake of the process counts until a target was
// delivered. Everything else is the tenant's, also an error that nobody foresaw.
func TestOwes_decidesByWhoseMistakeItIs(t *testing.T) {
	unknown := func(err error) error { return &workers.UnknownError{Errs: []error{err}} }
	api := func(code int32, reason metav1.StatusReason) error {
		return &sinks.TargetError{Err: fmt.Errorf("writing: %w", &apierrors.StatusError{ErrStatus: metav1.Status{Code: code, Reason: reason}})}
	}
	for name, test := range map[string]struct {
		err                   error
		afterOther, beforeAny bool // whether a Secret counts
		file                  bool // whether a file counts
	}{
		"no answer of Conjur":       {err: unknown(&conjur.VariableError{Err: &conjur.NoAnswerError{Err: errors.New("refused")}}), afterOther: true, beforeAny: true, file: true},
		"Conjur is down":            {err: unknown(&conjur.StatusError{Status: http.StatusServiceUnavailable}), afterOther: true, beforeAny: true, file: true},
		"not logged in":             {err: unknown(&conjur.StatusError{Status: http.StatusUnauthorized}), afterOther: true, beforeAny: true, file: true},
		"one variable is refused":   {err: unknown(&conjur.StatusError{Status: http.StatusBadRequest}), beforeAny: true, file: true},
		"suspect":                   {err: unknown(&variables.SuspectError{}), beforeAny: true, file: true},
		"held":                      {err: unknown(&variables.HeldError{Suspicion: &variables.SuspectError{}}), beforeAny: true, file: true},
		"an empty list":             {err: unknown(variables.ErrNoVariables), beforeAny: true, file: true},
		"too many batches":          {err: unknown(variables.ErrBudget), beforeAny: true, file: true},
		"a missing right":           {err: api(http.StatusForbidden, metav1.StatusReasonForbidden), beforeAny: true, file: true},
		"the API server is down":    {err: api(http.StatusInternalServerError, ""), afterOther: true, beforeAny: true, file: true},
		"the API server is busy":    {err: api(http.StatusTooManyRequests, ""), afterOther: true, beforeAny: true, file: true},
		"no credentials":            {err: api(http.StatusUnauthorized, ""), afterOther: true, beforeAny: true, file: true},
		"no connection":             {err: &sinks.TargetError{Err: &url.Error{Err: errors.New("refused")}}, afterOther: true, beforeAny: true, file: true},
		"too late":                  {err: &sinks.TargetError{Err: context.DeadlineExceeded}, afterOther: true, beforeAny: true, file: true},
		"a quota":                   {err: api(http.StatusForbidden, ""), file: true},
		"an admission policy":       {err: api(http.StatusUnprocessableEntity, ""), file: true},
		"revoked":                   {err: &workers.RevokedError{}},
		"a faulty definition":       {err: &workers.InvalidError{}},
		"a value that does not fit": {err: &workers.RenderError{Err: errors.New("no")}},
		"refused":                   {err: &sinks.RefusedError{}},
		"no Secret":                 {err: &sinks.MissingError{}, file: true},
		"an unforeseen reason":      {err: unknown(errors.New("new")), file: true},
		"two reasons, one shared": {
			err:        errors.Join(&workers.InvalidError{}, unknown(&conjur.NoAnswerError{Err: errors.New("refused")})),
			afterOther: true, beforeAny: true, file: true,
		},
	} {
		secret, file := &targets.Target{Secret: &targets.Secret{}}, &targets.Target{}
		if got := owes(secret, test.err, true); got != test.afterOther {
			t.Errorf("%s: a Secret counts beside another one that was delivered: %v", name, got)
		}
		if got := owes(secret, test.err, false); got != test.beforeAny {
			t.Errorf("%s: a Secret counts before any was delivered: %v", name, got)
		}
		if got := owes(file, test.err, true); got != test.file {
			t.Errorf("%s: a file counts: %v", name, got)
		}
		faulty := &targets.Target{Secret: &targets.Secret{}, Faults: []string{"a fault"}}
		if !owes(faulty, test.err, true) {
			t.Errorf("%s: a Secret with a fault in the process's configuration does not count", name)
		}
	}
}
