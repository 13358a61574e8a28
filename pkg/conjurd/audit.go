package conjurd

import (
	"io"
	"log/slog"
	"time"

	"github.com/secretsync/syncer/pkg/conjurd/internal/policy"
)

// auditLog writes one line of JSON for each decision. It never receives a value.
type auditLog struct{ log *slog.Logger }

func newAuditLog(w io.Writer) *auditLog {
	if w == nil {
		return &auditLog{slog.New(slog.DiscardHandler)}
	}
	return &auditLog{slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.String("time", a.Value.Time().UTC().Format(time.RFC3339Nano))
			}
			return a
		},
	}))}
}

// decided records whether role was allowed to perform the operation on a resource.
// thing is "" if the operation concerns the role itself.
func (a *auditLog) decided(c *call, operation, role, thing string, allowed bool) {
	attrs := []any{"operation", operation, "role", role, "allowed", allowed, "client_ip", c.clientIP().String(), "request_id", c.id}
	if thing != "" {
		attrs = append(attrs, "id", thing)
	}
	a.log.InfoContext(c.ctx(), "audit", attrs...)
}

// broke records an internal failure.
func (a *auditLog) broke(c *call, err error) {
	a.log.ErrorContext(c.ctx(), "failure", "error", err.Error(), "method", c.r.Method, "path", c.r.URL.Path, "request_id", c.id)
}

// explained records the reason for a refusal whose answer reveals nothing to the
// caller.
func (a *auditLog) explained(c *call, err error) {
	a.log.WarnContext(c.ctx(), "refused", "reason", err.Error(), "path", c.r.URL.Path, "request_id", c.id)
}

// refused explains the refusal of a log-in to the operator. role is "" if it is unknown.
func (s *Server) refused(c *call, role string, err error) {
	s.audit.explained(c, err)
	if s.opt.Refused == nil {
		return
	}
	login := ""
	if role != "" {
		login = loginOf(policy.Ref(role))
	}
	s.opt.Refused(login, c.clientIP().String(), err.Error())
}
