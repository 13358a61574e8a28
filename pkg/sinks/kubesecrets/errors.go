package kubesecrets

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/secretsync/syncer/internal/lazyregexp"
	"github.com/secretsync/syncer/pkg/sinks"
	"github.com/secretsync/syncer/pkg/targets"
)

var (
	errConflict  = errors.New("another client changed it at the same time")
	errReplaced  = errors.New("it was deleted and created again after it was read")
	errUndefined = errors.New("it was deleted since its definition was read")
)

// failed prefixes an error with the target, unless the error names it already.
func failed(t *targets.Target, err error) error {
	switch err.(type) {
	case nil, *sinks.MissingError, *sinks.RefusedError:
		return err
	}
	return &sinks.TargetError{Target: t.Key, Err: err}
}

// callError describes a failed request. It omits the text of the API server or of
// an admission webhook, which may quote the request. No such error is permanent.
// Even a rejection of the content may come from a policy that uses the same words,
// and policies change.
func callError(verb string, t *targets.Target, err error) error {
	answer, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok {
		return fmt.Errorf("%s the Secret: %w", verb, transportError(err))
	}
	status := answer.ErrStatus
	genuine := !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
	switch {
	case genuine && status.Code == http.StatusConflict, isNoSecret(err):
		return errConflict
	case genuine && hasCause(status, "metadata.uid"):
		return errReplaced
	}
	clean := metav1.Status{Status: metav1.StatusFailure, Code: status.Code, Message: explain(verb, t, status)}
	if status.Details != nil {
		clean.Details = &metav1.StatusDetails{RetryAfterSeconds: status.Details.RetryAfterSeconds}
	}
	lacking := lackingVerb(status)
	if status.Code == http.StatusForbidden && lacking != "" {
		clean.Reason = metav1.StatusReasonForbidden // no quota, and no admission policy
	}
	err = &apierrors.StatusError{ErrStatus: clean}
	if status.Code == http.StatusForbidden && lacking == "patch" {
		return &unpatchableError{err}
	}
	return err
}

// unpatchableError is the API server's answer that no role grants us the verb
// patch.
type unpatchableError struct{ error }

func (e *unpatchableError) Unwrap() error { return e.error }

// lackingVerb returns the verb that a role would have to grant. It returns "" if
// the answer has another reason.
func lackingVerb(status metav1.Status) string {
	if found := lacksVerb().FindStringSubmatch(status.Message); found != nil {
		return found[1]
	}
	return ""
}

// isNoSecret reports whether the API server says that the Secret does not exist.
// Other causes of a 404 are a missing namespace or a proxy.
func isNoSecret(err error) bool {
	answer, ok := errors.AsType[*apierrors.StatusError](err)
	return ok && answer.ErrStatus.Code == http.StatusNotFound && answer.ErrStatus.Details != nil && answer.ErrStatus.Details.Kind == "secrets" &&
		!apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// hasCause reports whether the API server names the field as a cause.
func hasCause(status metav1.Status, field string) bool {
	return status.Details != nil && slices.ContainsFunc(status.Details.Causes, func(c metav1.StatusCause) bool { return c.Field == field })
}

var (
	lacksVerb = lazyregexp.New(`cannot ([a-z]+) resource "secrets"`)
	denier    = lazyregexp.New(`^admission webhook "[a-z0-9.-]+"|ValidatingAdmissionPolicy '[a-z0-9.-]+'`)
)

// explain describes the API server's answer without quoting it.
func explain(verb string, t *targets.Target, status metav1.Status) string {
	words := fmt.Sprintf("%s the Secret: the API server answers %d %s", verb, status.Code, http.StatusText(int(status.Code)))
	text := status.Message
	switch lacking := lackingVerb(status); {
	case status.Code == http.StatusUnauthorized:
		return words + ": it does not accept the credentials; check the token of the service account or of the kubeconfig"
	case status.Code == http.StatusForbidden && lacking != "":
		return fmt.Sprintf("%s: a Role must grant the verb %s for secrets in the namespace %s, with a RoleBinding to Syncer's service account", words, lacking, t.Secret.Namespace)
	case apierrors.HasStatusCause(&apierrors.StatusError{ErrStatus: status}, "NamespaceTerminating"):
		return fmt.Sprintf("%s: the namespace %s is being deleted", words, t.Secret.Namespace)
	case status.Code == http.StatusForbidden && strings.Contains(text, "exceeded quota"):
		return fmt.Sprintf("%s: a quota of the namespace %s is used up; raise it, or remove objects", words, t.Secret.Namespace)
	case status.Code == http.StatusNotFound && status.Details != nil && status.Details.Kind == "namespaces":
		return fmt.Sprintf("%s: there is no namespace %s; create it, or correct the configuration", words, t.Secret.Namespace)
	case denier().MatchString(text):
		return words + ": denied by " + denier().FindString(text)
	}
	if fields := faultyFields(status); len(fields) > 0 {
		words += ": it does not take " + strings.Join(fields, ", ")
	}
	return words
}

// faultyFields lists the fields of a Secret that the API server rejects, without
// the text in brackets.
func faultyFields(status metav1.Status) []string {
	if status.Details == nil {
		return nil
	}
	var fields []string
	for _, cause := range status.Details.Causes {
		field, _, _ := strings.Cut(cause.Field, "[")
		if slices.Contains([]string{"data", "type", "immutable", "metadata.name", "metadata.labels", "metadata.annotations", "metadata.managedFields"}, field) {
			fields = append(fields, field)
		}
	}
	return slices.Compact(fields)
}

// transportError passes on errors of the network and of time limits. Other errors
// concern an answer that could not be decoded, and may quote it.
func transportError(err error) error {
	_, isURL := errors.AsType[*url.Error](err)
	if isURL || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return errors.New("the answer cannot be read")
}
