package conjurd

import (
	"errors"
	"net/http"
	"net/netip"
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
	form, refused := c.form()
	if refused != nil {
		return *refused
	}
	token, count, err := newFactoryToken(form)
	if err != nil {
		return badArgument(err.Error())
	}
	factory := policy.Ref(token.Factory)
	return s.change(c, func(tx *store.Tx, roles store.Roles) (reply, error) {
		if refused, err := s.mayUseFactory(c, tx, roles, factory, "execute"); err != nil || refused != nil {
			return deref(refused), errors.Join(err, errRefused)
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

// newFactoryToken reads the parameters of new tokens, and their number.
func newFactoryToken(form url.Values) (token store.FactoryToken, count int, err error) {
	token = store.FactoryToken{Factory: form.Get("host_factory"), CIDR: []string{}}
	if _, kind, _, ok := policy.Ref(token.Factory).Split(); !ok || kind != "host_factory" {
		return token, 0, errors.New("host_factory")
	}
	if token.ExpiresAt, err = time.Parse(time.RFC3339, form.Get("expiration")); err != nil {
		return token, 0, errors.New("invalid type for parameter 'expiration'")
	}
	count = 1
	if form.Has("count") {
		if count, err = strconv.Atoi(form.Get("count")); err != nil || count < 1 || count > maxFactoryTokens {
			return token, 0, errors.New("'count' must be between 1 and " + strconv.Itoa(maxFactoryTokens))
		}
	}
	for _, text := range slices.Concat(form["cidr[]"], form["cidr"]) {
		network, err := netip.ParsePrefix(text)
		if addr, err := netip.ParseAddr(text); err == nil && addr.Zone() == "" {
			token.CIDR = append(token.CIDR, netip.PrefixFrom(addr, addr.BitLen()).String())
			continue
		}
		if err != nil {
			return token, 0, errors.New("invalid type for parameter 'cidr'")
		}
		token.CIDR = append(token.CIDR, network.String())
	}
	return token, count, nil
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
	form, refused := c.form()
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
	return text(http.StatusOK, strings.Join(keys, "\n")+"\n")
}

// form parses the body as a form, whatever its Content-Type.
func (c *call) form() (url.Values, *reply) {
	body, err := c.body(maxForm)
	if err != nil {
		no := empty(http.StatusBadRequest)
		if errors.Is(err, errTooLong) {
			no = empty(http.StatusRequestEntityTooLarge)
		}
		return nil, &no
	}
	form, _ := url.ParseQuery(string(body)) // ignore malformed pairs
	return form, nil
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
