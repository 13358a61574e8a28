package view

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/secretsync/syncer/internal/brief"
	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/conjur/variables"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/workers"
)

// Healthy returns a problem of the lanes that a restart of the process would solve.
func Healthy(lanes []Lane) error {
	for _, l := range lanes {
		if l.Pool.Overdue() {
			return fmt.Errorf("the workers of the identity %s have not finished a sync for too long; see SyncerWorkerStuck in docs/troubleshooting.md", l.Name)
		}
	}
	return nil
}

// Ready returns why a required target is not delivered or may not be fresh. The remarks
// name targets that do not count.
func Ready(lanes []Lane, rules Rules) (remarks []string, err error) {
	anyDelivered := slices.ContainsFunc(lanes, Lane.delivers)
	for _, l := range lanes {
		var more []string
		more, err = l.ready(rules, anyDelivered)
		remarks = append(remarks, more...)
		if err != nil {
			break
		}
	}
	return remarks, err
}

// ready returns which targets were not delivered yet, or that the poll has failed for too
// long. A target that was delivered and fails now does not make the process unready.
// Metrics and Events report it. anyDelivered means that the process has delivered a
// target, of this identity or another.
func (l Lane) ready(rules Rules, anyDelivered bool) (remarks []string, err error) {
	untried, failed, all := l.Targets.Unproven()
	identity := l.Name
	var owed []string
	for _, r := range failed {
		switch key, why := r.Spec.Key, r.Status.Err; {
		case rules.Tried:
		case owes(r.Spec, why, anyDelivered):
			owed = append(owed, reason(key, why))
		default:
			remarks = append(remarks, "not delivered: "+reason(key, why))
		}
	}
	age, polled := l.Targets.SincePoll()
	switch {
	case len(untried) > 0:
		err = fmt.Errorf("%d of %d targets of the identity %s have not been synced yet: %s", len(untried), all, identity, brief.List(untried))
	case rules.Refreshes && len(owed) > 0 && !polled && len(failed) == all:
		err = brief.ListError(fmt.Sprintf("the identity %s has not been able to reach Conjur yet", identity), owed)
	case len(owed) > 0:
		err = brief.ListError(fmt.Sprintf("%d of %d targets of the identity %s have not been delivered yet", len(owed), all, identity), owed)
	case rules.Refreshes && rules.Freshness > 0 && age > rules.Freshness:
		err = fmt.Errorf("the identity %s has not been able to poll Conjur for %v", identity, age.Round(time.Second))
	}
	return brief.Some(remarks, brief.Names), err
}

// delivers reports whether any target of the lane was delivered.
func (l Lane) delivers() bool {
	untried, failed, all := l.Targets.Unproven()
	return len(untried)+len(failed) < all
}

// reason returns why a target is not delivered, with its name.
func reason(key targets.Key, why error) string {
	text := why.Error()
	if !workers.NamesTarget(why) {
		text = string(key) + ": " + text
	}
	return strings.ReplaceAll(strings.TrimSpace(text), "\n", "; ")
}

// owes reports whether a target that is not delivered makes the process unready. The
// process owes its files, unless only the content of Conjur explains the failure. A Secret
// belongs to a tenant, whose mistake must not stop others: it counts only if the failure
// may concern other tenants too (decision 015).
func owes(t *targets.Target, err error, anyDelivered bool) bool {
	switch {
	case len(t.Faults) > 0: // of the process's configuration
		return true
	case t.Secret != nil:
		return unanswered(err) || !anyDelivered && (doubtful(err) || t.Secret.Unread != "")
	}
	rendering, ok := errors.AsType[*workers.RenderError](err)
	return ok && rendering.Invalid || !workers.Permanent(err, true)
}

// unanswered reports whether Conjur or the API server gave no answer to Syncer, whatever
// the question was.
func unanswered(err error) bool {
	if _, none := errors.AsType[*conjur.NoAnswerError](err); none {
		return true
	}
	if answer, ok := errors.AsType[*conjur.StatusError](err); ok && answer.Down() {
		return true
	}
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		code := status.Status().Code
		return code == http.StatusUnauthorized || code == http.StatusTooManyRequests || code >= http.StatusInternalServerError
	}
	_, network := errors.AsType[*url.Error](err)
	return network || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// doubtful reports whether an answer about one target may mean a mistake that concerns all
// targets. A gateway can make variables look missing, and a role may lack a right. Neither
// is the case if another target was delivered.
func doubtful(err error) bool {
	_, suspect := errors.AsType[*variables.SuspectError](err)
	_, odd := errors.AsType[*conjur.StatusError](err)
	return suspect || odd || errors.Is(err, variables.ErrNoVariables) || errors.Is(err, variables.ErrBudget) ||
		apierrors.ReasonForError(err) == metav1.StatusReasonForbidden
}
