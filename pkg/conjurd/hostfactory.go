package conjurd

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/secretsync/syncer/pkg/conjurd/internal/load"
	"github.com/secretsync/syncer/pkg/conjurd/internal/policy"
	"github.com/secretsync/syncer/pkg/conjurd/internal/slosilo"
	"github.com/secretsync/syncer/pkg/conjurd/internal/store"
)

const (
	maxForm          = 64 << 10
	maxFactoryTokens = 100 // in one request
	maxHostID        = 2 << 10
)

// factoryTokenJSON is a token as the server returns it, once.
type factoryTokenJSON struct {
	Expiration string   `json:"expiration"`
	CIDR       []string `json:"cidr"`
	Token      string   `json:"token"`
}

// createFactoryTokens creates tokens that permit the creation of hosts.
func (s *Server) createFactoryTokens(c *call) reply {
	form, refused := c.parameters()
	if refused != nil {
		return *refused
	}
	factory := policy.Ref(form.Get("host_factory"))
	if factory == "" {
		return badArgument("host_factory")
	}
	kind := factory.Kind()
	return s.change(c, func(tx *store.Tx, roles store.Roles) (reply, error) {
		o, err := tx.Object(string(factory))
		switch {
		case err != nil:
			return reply{}, err
		case kind != "host_factory" && o != nil && tx.Visible(roles, string(factory), o):
			return badArgument("Invalid resource kind: " + kind), errRefused
		}
		if refused, err := s.mayUseFactory(c, tx, roles, factory, "execute"); err != nil || refused != nil {
			return deref(refused), errors.Join(err, errRefused)
		}
		token, count, fault := newFactoryToken(form, s.now())
		if fault != "" {
			return badArgument(fault), errRefused
		}
		out := []factoryTokenJSON{}
		for range count {
			text := string(load.NewAPIKey())
			if err := tx.PutFactoryToken(text, token, s.now()); err != nil {
				return reply{}, err
			}
			out = append(out, factoryTokenJSON{token.ExpiresAt.UTC().Format(time.RFC3339), token.CIDR, text})
		}
		return jsonReply(http.StatusOK, out), nil
	})
}

// newFactoryToken reads the parameters of new tokens, and their number. The fault is
// the message for the client, or empty.
func newFactoryToken(form url.Values, now time.Time) (token store.FactoryToken, count int, fault string) {
	token = store.FactoryToken{Factory: form.Get("host_factory"), CIDR: []string{}}
	expiration := form.Get("expiration")
	if expiration == "" {
		return token, 0, "expiration"
	}
	var ok bool
	if token.ExpiresAt, ok = parseTime(expiration); !ok {
		return token, 0, "Input is invalid ISO8601 datetime string: " + expiration
	}
	if !token.ExpiresAt.After(now) {
		return token, 0, "Value for parameter expiration must be in the future: " + token.ExpiresAt.Format("2006-01-02T15:04:05-07:00")
	}
	count = 1
	if form.Has("count") {
		var err error
		if count, err = strconv.Atoi(form.Get("count")); err != nil || count < 1 || count > maxFactoryTokens {
			return token, 0, "Invalid value for parameter 'count': " + form.Get("count")
		}
	}
	for _, text := range listOf(form, "cidr") {
		network, fault := policy.ParseNetwork(text)
		if fault != "" {
			return token, 0, fault
		}
		token.CIDR = append(token.CIDR, network)
	}
	return token, count, ""
}

// parseTime reads a time in the common forms of ISO 8601. Without a zone it is UTC.
func parseTime(text string) (time.Time, bool) {
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05Z0700", "2006-01-02T15:04:05", "2006-01-02T15:04Z07:00", "2006-01-02"} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}

// deleteFactoryToken revokes a token. The caller needs the privilege update on its
// factory.
func (s *Server) deleteFactoryToken(c *call) reply {
	return s.change(c, func(tx *store.Tx, roles store.Roles) (reply, error) {
		token, err := tx.FactoryToken(c.vars["token"])
		if err != nil {
			return reply{}, err
		}
		if token == nil {
			return empty(http.StatusNotFound), errRefused
		}
		if refused, err := s.mayUseFactory(c, tx, roles, policy.Ref(token.Factory), "update"); err != nil || refused != nil {
			return deref(refused), errors.Join(err, errRefused)
		}
		return empty(http.StatusNoContent), tx.DeleteFactoryToken(c.vars["token"])
	})
}

// mayUseFactory checks the caller's privilege on the host factory. It returns nil
// if the caller has it.
func (s *Server) mayUseFactory(c *call, tx *store.Tx, roles store.Roles, factory policy.Ref, privilege string) (*reply, error) {
	o, err := tx.Object(string(factory))
	if err != nil {
		return nil, err
	}
	if o == nil || !tx.Visible(roles, string(factory), o) {
		no := notFound(factory)
		return &no, nil
	}
	allowed := tx.Allowed(roles, privilege, string(factory), o)
	s.audit.decided(c, c.r.Method+" host_factory_tokens", c.role, string(factory), allowed)
	if !allowed {
		no := forbidden(c)
		return &no, nil
	}
	return nil, nil
}

// createHost creates a host. The caller presents a host factory token.
func (s *Server) createHost(c *call) reply {
	text, ok := tokenOf(c.r)
	if !ok {
		return empty(http.StatusUnauthorized)
	}
	form, refused := c.parameters()
	if refused != nil {
		return *refused
	}
	rep := empty(http.StatusUnauthorized)
	err := s.update(c.ctx(), func(tx *store.Tx) error {
		token, err := tx.FactoryToken(text)
		if err != nil {
			return err
		}
		if !s.admits(c, tx, token) {
			return errRefused
		}
		rep, err = s.factoryHost(c, tx, token.Factory, form)
		return err
	})
	if err != nil && !errors.Is(err, errRefused) {
		return s.broken(c, err)
	}
	return rep
}

// admits reports whether the token is valid now for the caller's address.
func (s *Server) admits(c *call, tx *store.Tx, token *store.FactoryToken) bool {
	return token != nil && s.now().Before(token.ExpiresAt) && tx.Exists(token.Factory) &&
		(len(token.CIDR) == 0 || slosilo.InAny(c.clientIP(), token.CIDR))
}

// factoryHost creates the host that the form describes.
func (s *Server) factoryHost(c *call, tx *store.Tx, factory string, form url.Values) (reply, error) {
	name := form.Get("id")
	if strings.TrimSpace(name) == "" || len(name) > maxHostID || strings.ContainsRune(name, 0) {
		return badArgument("id"), errRefused
	}
	if strings.HasPrefix(strings.TrimPrefix(name, "/"), "conjur/") {
		return badArgument("Invalid id: " + name), errRefused
	}
	id := policy.MakeRef(policy.Ref(factory).Account(), "host", name)
	o, key, err := load.Host(tx, factory, id, annotationsOf(form), s.now())
	s.audit.decided(c, "create host", factory, string(id), err == nil)
	if errors.Is(err, load.ErrTaken) {
		return forbidden(c), errRefused
	}
	if err != nil {
		return reply{}, err
	}
	res, err := describe(tx, string(id), o)
	return jsonReply(http.StatusCreated, struct {
		resourceJSON
		APIKey string `json:"api_key"`
	}{res, string(key)}), err
}

// annotationsOf reads the fields annotations[name], sorted by name.
func annotationsOf(form url.Values) []policy.Annotation {
	var out []policy.Annotation
	for field, values := range form {
		if name, ok := strings.CutPrefix(field, "annotations["); ok && strings.HasSuffix(name, "]") {
			out = append(out, policy.Annotation{Name: strings.TrimSuffix(name, "]"), Value: values[0]})
		}
	}
	slices.SortFunc(out, func(a, b policy.Annotation) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// publicKeys lists a user's public keys, one per line.
func (s *Server) publicKeys(c *call) reply {
	cred, err := s.credentials(c, string(c.resource()))
	if err != nil {
		return s.broken(c, err)
	}
	var keys []string
	if cred != nil {
		keys = cred.PublicKeys
	}
	return textReply(http.StatusOK, strings.Join(keys, "\n")+"\n")
}

// parameters returns those of the query and of the form. The form's take precedence.
func (c *call) parameters() (url.Values, *reply) {
	form, refused := c.form()
	if refused != nil {
		return nil, refused
	}
	all := maps.Clone(c.query)
	maps.Copy(all, form)
	return all, nil
}

// form returns the fields in the body: of a form if there is no Content-Type, or of a
// JSON object. A body of another type has none.
func (c *call) form() (url.Values, *reply) {
	body, err := c.body(maxForm)
	no := empty(http.StatusBadRequest)
	if errors.Is(err, errTooLong) {
		no = empty(http.StatusRequestEntityTooLarge)
	}
	if err != nil {
		return nil, &no
	}
	media, _, _ := strings.Cut(c.r.Header.Get("Content-Type"), ";")
	switch strings.ToLower(strings.TrimSpace(media)) {
	case "", "application/x-www-form-urlencoded":
		return parseParameters(string(body)), nil
	case "application/json":
		var object map[string]any
		d := json.NewDecoder(bytes.NewReader(body))
		d.UseNumber()
		if d.Decode(&object) != nil || object == nil {
			return nil, &no
		}
		return fieldsOf(object), nil
	}
	return url.Values{}, nil
}

// fieldsOf converts a JSON object to the fields of a form.
func fieldsOf(object map[string]any) url.Values {
	fields := url.Values{}
	for name, value := range object {
		switch value := value.(type) {
		case nil:
		case []any:
			for _, v := range value {
				fields.Add(name+"[]", fmt.Sprint(v))
			}
		case map[string]any:
			for k, v := range value {
				fields.Set(name+"["+k+"]", fmt.Sprint(v))
			}
		default:
			fields.Set(name, fmt.Sprint(value))
		}
	}
	return fields
}

// change is snapshot with a write transaction. On errRefused it writes nothing and
// returns the reply.
func (s *Server) change(c *call, f func(*store.Tx, store.Roles) (reply, error)) reply {
	var rep reply
	err := s.update(c.ctx(), func(tx *store.Tx) (err error) {
		roles := tx.RolesOf(c.role)
		if roles == nil {
			rep = forbidden(c)
			return errRefused
		}
		rep, err = f(tx, roles)
		return err
	})
	if err != nil && (!errors.Is(err, errRefused) || rep.status == 0) {
		return s.broken(c, err)
	}
	return rep
}

func deref(r *reply) reply {
	if r == nil {
		return reply{}
	}
	return *r
}
