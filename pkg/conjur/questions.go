package conjur

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/cyberark/conjur-api-go/conjurapi"

	"github.com/secretsync/syncer/pkg/secret"
)

// Batch is the question for several variables. It keeps the request once it is
// built, since building it costs more than sending it.
type Batch struct {
	IDs []string // distinct, and such as CheckID and Batchable take
	req *http.Request
}

// Batch asks for several values at once; conditionally, if there is an ETag. It
// must not be called twice at once with the same Batch. The answer is all or
// nothing, and names one of several culprits unless the server is conjurd.
func (c *Client) Batch(ctx context.Context, b *Batch, etag string) Values {
	if b.req == nil {
		req, err := c.batchRequest(b.IDs)
		if err != nil {
			return Values{Reading: Reading{Err: err}}
		}
		b.req = req
	}
	r, reading := c.reading(ctx, nil, KindBatch, batchSubject(b.IDs), conditional(b.req, etag), nil)
	if r == nil {
		return Values{Reading: reading}
	}
	defer r.wipe()
	switch r.status {
	case http.StatusOK:
		found, bad, err := decodeBatch(r.header, r.body, b.IDs, c.resource(""))
		if err != nil {
			return Values{Reading: reading.as(Unusable, err.Error())}
		}
		reading = reading.as(Given, "")
		if len(bad) == 0 {
			reading.ETag = r.header.Get("ETag")
		}
		return Values{Reading: reading, Found: found, Bad: bad}
	case http.StatusNotModified:
		if etag == "" {
			return Values{Reading: reading.as(Unusable, "though the question was not conditional")}
		}
		reading = reading.as(Unchanged, "")
		reading.ETag = etag
	case http.StatusNotFound:
		id, ok := namedMissing(r.header, r.body, c.config.Account)
		if !ok || !slices.Contains(b.IDs, id) {
			return Values{Reading: reading.as(Unusable, notConjur)}
		}
		foreign := func(id string) bool { return !slices.Contains(b.IDs, id) }
		others := slices.DeleteFunc(alsoMissing(r.body, c.config.Account), foreign)
		return Values{Reading: reading.as(Missing, ""), Missing: append(others, id)}
	case http.StatusForbidden, http.StatusInternalServerError:
		if reading.Form == Unusable {
			reading = reading.as(Unusable, notConjur)
		}
	}
	return Values{Reading: reading}
}

// Variable asks for one value; conditionally, if there is an ETag.
func (c *Client) Variable(ctx context.Context, id, etag string) Values {
	req, err := c.api.RetrieveSecretRequest(c.resource(id))
	if err == nil {
		req = conditional(req, etag)
	}
	r, reading := c.reading(ctx, nil, KindVariable, fmt.Sprintf("%q", id), req, err)
	switch {
	case r == nil:
	case r.status == http.StatusOK:
		return c.value(id, r, reading)
	case r.status == http.StatusNotModified && etag != "":
		reading = reading.as(Unchanged, "")
		reading.ETag = etag
	case r.status == http.StatusNotFound:
		if named, ok := namedMissing(r.header, r.body, c.config.Account); ok && named == id {
			return Values{Reading: reading.as(Missing, ""), Missing: []string{id}}
		}
		reading = reading.as(Unusable, notConjur)
	}
	return Values{Reading: reading}
}

// value reads the value in an answer about one variable.
func (c *Client) value(id string, r *reply, reading Reading) Values {
	form, detail := Unusable, ""
	switch {
	case r.header.Get("Content-Encoding") != "":
		detail = errEncoding.Error()
	case len(r.body) == 0:
		detail = errEmpty.Error()
	case !r.isSentValue():
		form, detail = Formless, notConjur
	default:
		reading = reading.as(Given, "")
		reading.ETag = r.header.Get("ETag")
		return Values{Reading: reading, Found: map[string]secret.Value{id: secret.New(r.body)}}
	}
	r.wipe()
	return Values{Reading: reading.as(form, detail)}
}

// MostValues is how many variables Values can ask for.
const MostValues = 250

// Values asks for values by the route that answers for each variable, which the
// genuine server has in its SaaS edition only. Its word about what is missing
// has no form that proves anything. A variable that has neither a value nor an
// error has none that this route can carry. Form is Unusable if the server does
// not offer the route.
func (c *Client) Values(ctx context.Context, ids []string) Values {
	req, err := c.api.V2().BatchRetrieveSecretsRequest(ids)
	r, reading := c.reading(ctx, nil, KindValues, batchSubject(ids), req, err)
	if r == nil {
		return Values{Reading: reading}
	}
	defer r.wipe()
	answers, ok := decodeValues(r.header, r.body)
	switch {
	case r.status >= http.StatusInternalServerError && r.status != http.StatusNotImplemented:
		return Values{Reading: reading.as(Down, "")}
	case reading.Form == Down:
		return Values{Reading: reading}
	case r.status != http.StatusOK || !ok:
		return Values{Reading: reading.as(Unusable, notConjur)}
	}
	v := Values{Reading: reading.as(Given, ""), Found: map[string]secret.Value{}, Bad: map[string]error{}}
	answered := map[string]bool{}
	for _, a := range answers {
		id := strings.TrimPrefix(a.ID, c.resource(""))
		answered[id] = true
		switch {
		case !slices.Contains(ids, id):
		case a.usable():
			v.Found[id] = secret.New([]byte(*a.Value))
		case a.Status == http.StatusNotFound, a.Status == http.StatusForbidden:
			v.Missing = append(v.Missing, id)
		}
	}
	for _, id := range ids {
		if !answered[id] {
			v.Bad[id] = errLacking
		}
	}
	return v
}

// Identity is how the server knows us.
type Identity struct {
	Name string // such as "host/app"
	Role string // such as "dev:host:app"
}

// Whoami asks how the server knows us by a token. It is Given only if that is
// the identity of our account that logged in first.
func (c *Client) Whoami(ctx context.Context, t *Token) (Identity, Reading) {
	req, err := c.api.WhoAmIRequest()
	r, reading := c.reading(ctx, t, KindWhoami, "", req, err)
	if r == nil {
		return Identity{}, reading
	}
	switch account, name := decodeWhoami(r.body); {
	case r.status != http.StatusOK, account == "":
		return Identity{}, reading.as(Unusable, "so it is not sure who was asked")
	case account != c.config.Account:
		return Identity{}, reading.as(Unusable, "for another account than ours")
	case name != cmp.Or(strings.TrimPrefix(c.tokens.owner(), "user/"), name): // there a user may be written with its kind
		return Identity{}, reading.as(Unusable, fmt.Sprintf("for %q, and not for %q, so what that one cannot see is no proof; "+
			"see to the credentials, then restart", name, c.tokens.owner()))
	default:
		return Identity{Name: name, Role: c.role(name)}, reading.as(Given, "")
	}
}

// role is the full id of a role by the name that logs in.
func (c *Client) role(name string) string {
	if host, ok := strings.CutPrefix(name, "host/"); ok {
		return c.config.Account + ":host:" + host
	}
	return c.config.Account + ":user:" + name
}

// Check asks whether this identity has a privilege on a variable, with the token
// or, if it is nil, with the shared one. The answer is Given for yes, No, or
// Missing for a variable that cannot be seen.
func (c *Client) Check(ctx context.Context, t *Token, id, privilege string) Reading {
	req, err := pathEscaped(c.api.CheckPermissionRequest(c.resource(id), privilege))
	r, reading := c.reading(ctx, t, KindCheck, fmt.Sprintf("%q", id), req, err)
	switch {
	case r == nil:
	case r.status == http.StatusNoContent:
		return reading.as(Given, "")
	case r.status == http.StatusNotFound && len(r.body) == 0:
		return reading.as(No, "")
	case r.status == http.StatusNotFound && isJSON(r.header):
		return reading.as(Missing, "")
	}
	return reading
}

// Permission is what a role may do with a variable.
type Permission struct{ Privilege, Role string }

// RotatorAnnotation names the rotator of Conjur's own that is to change a variable.
const RotatorAnnotation = "rotation/rotator"

// Resource is what is said about a variable, but its value.
type Resource struct {
	Permissions []Permission
	Annotations map[string]string
	Newest      uint64 // the number of the newest value; 0: there is none
	Expires     bool   // the newest value has an end, which only the server's own rotator sets
}

// Resource asks what is said about a variable. It is Given only if the answer names
// the variable.
func (c *Client) Resource(ctx context.Context, t *Token, id string) (Resource, Reading) {
	return c.about(ctx, t, c.resource(id), fmt.Sprintf("%q", id))
}

// SetAnnotation is the annotation of a host that names the set which rotates the
// host's key: the set's id, and after a space the set's identity, if that is known.
// A host without it belongs to any set.
const SetAnnotation = "syncer/set"

// HostAnnotations returns the annotations of a host in the policy.
func (c *Client) HostAnnotations(ctx context.Context, host string) (map[string]string, error) {
	about, reading := c.about(ctx, nil, c.config.Account+":host:"+host, fmt.Sprintf("host %q", host))
	return about.Annotations, reading.Err
}

func (c *Client) about(ctx context.Context, t *Token, full, subject string) (Resource, Reading) {
	req, err := pathEscaped(c.api.ResourceRequest(full))
	r, reading := c.reading(ctx, t, KindResource, subject, req, err)
	if r == nil {
		return Resource{}, reading
	}
	about, ok := decodeResource(r, full)
	if !ok {
		return Resource{}, reading.as(Unusable, "")
	}
	return about, reading.as(Given, "")
}

// LongestPage is how many variables List can ask for. The genuine server may be
// set up to list fewer, and then refuses longer pages.
const LongestPage = 1000

// Page is a page of the list of variables, without account and kind.
type Page struct {
	IDs     []string
	Unset   map[string]bool // that are said to have no version
	Rotated []string        // that have the RotatorAnnotation
}

// List asks for a page of the list of the variables that this identity can see,
// which it need not be allowed to read; conditionally, if there is an ETag.
func (c *Client) List(ctx context.Context, length, offset int, etag string) (Page, Reading) {
	req, err := c.api.ResourcesRequest(&conjurapi.ResourceFilter{Kind: "variable", Limit: length, Offset: offset})
	if err == nil {
		req = conditional(req, etag)
	}
	r, reading := c.reading(ctx, nil, KindList, fmt.Sprintf("from offset %d", offset), req, err)
	switch {
	case r == nil:
		return Page{}, reading
	case r.status == http.StatusNotModified && etag != "":
		return Page{}, reading.as(Unchanged, "")
	case r.status != http.StatusOK:
		return Page{}, reading
	}
	page, err := decodeList(r.header, r.body, c.resource(""), length)
	if err != nil {
		return Page{}, reading.as(Unusable, err.Error())
	}
	reading = reading.as(Given, "")
	reading.ETag = r.header.Get("ETag")
	return page, reading
}

// Renew makes the shared token one that was requested after the moment. The one
// before stays in use if that fails.
func (c *Client) Renew(ctx context.Context, moment time.Time) error {
	return c.tokens.newer(ctx, moment)
}
