package conjur

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/cyberark/conjur-api-go/conjurapi"

	"github.com/secretsync/syncer/pkg/secret"
)

// Batch is a request for several variables. It caches the built request, because
// building costs more than sending.
type Batch struct {
	IDs []string // distinct and valid for CheckID and Batchable
	req *http.Request
}

// Batch requests several values at once. With an ETag the request is conditional.
// It must not be called concurrently with the same Batch. The answer contains all
// values or none. A refusal names one of the faulty variables, or all of them if
// the server is conjurd.
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
		found, bad, err := decodeBatch(r.header, r.body, b.IDs, c.fullID(""))
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
		id, ok := genuineMissing(r.header, r.body, c.config.Account)
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

// Variable requests one value. With an ETag the request is conditional.
func (c *Client) Variable(ctx context.Context, id, etag string) Values {
	req, err := c.api.RetrieveSecretRequest(c.fullID(id))
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
		if named, ok := genuineMissing(r.header, r.body, c.config.Account); ok && named == id {
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

// Identity is the client's identity at the server.
type Identity struct {
	Name string // such as "host/app"
	Role string // such as "dev:host:app"
}

// Whoami requests the identity of a token. It is Given only if that is the
// identity, in our account, of the first login.
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
	// The owner may have the prefix "user/", which the server omits.
	case name != cmp.Or(strings.TrimPrefix(c.tokens.owner(), "user/"), name):
		return Identity{}, reading.as(Unusable, fmt.Sprintf("for %q instead of %q, so a missing variable proves nothing; "+
			"see to the credentials, then restart", name, c.tokens.owner()))
	default:
		return Identity{Name: name, Role: c.role(name)}, reading.as(Given, "")
	}
}

// role returns the full id of a role for a login.
func (c *Client) role(name string) string {
	if host, ok := strings.CutPrefix(name, "host/"); ok {
		return c.config.Account + ":host:" + host
	}
	return c.config.Account + ":user:" + name
}

// Execute is the privilege to read a variable's value.
const Execute = "execute"

// Check asks whether this identity has a privilege on a variable. A nil token means
// the shared one. The form is Given for yes, No for no, and Missing for an
// invisible variable.
func (c *Client) Check(ctx context.Context, t *Token, id, privilege string) Reading {
	req, err := pathEscaped(c.api.CheckPermissionRequest(c.fullID(id), privilege))
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

// Permission is a privilege of a role on a variable.
type Permission struct{ Privilege, Role string }

// RotatorAnnotation names the Conjur rotator that changes a variable.
const RotatorAnnotation = "rotation/rotator"

// Resource holds a variable's properties without its value.
type Resource struct {
	Permissions []Permission
	Annotations map[string]string
	Newest      uint64 // version of the latest value; 0 if there is none
	Expires     bool   // the latest value expires, which only the server's rotator sets
}

// Resource requests a variable's properties. It is Given only if the answer names
// the variable.
func (c *Client) Resource(ctx context.Context, t *Token, id string) (Resource, Reading) {
	return c.about(ctx, t, c.fullID(id), fmt.Sprintf("%q", id))
}

// SetAnnotation is the annotation of a host that names the set that rotates its
// key. It contains the set's id, and after a space the set's identity, if known. A host without
// it may belong to any set.
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

// LongestPage bounds the variables of one List request. The genuine server may be
// configured with a lower limit, and then refuses longer pages.
const LongestPage = 1000

// Page is a page of the list of variables. Ids have no account and no kind.
type Page struct {
	IDs     []string
	Unset   map[string]bool // variables without any version
	Rotated []string        // variables with the RotatorAnnotation
	// Readers maps a variable to its owner and the roles with the privilege Execute,
	// as one text. Conjur gives or refuses variables with equal Readers alike.
	Readers map[string]string
}

// List requests a page of the variables that this identity can see. It may lack the
// privilege to read them. With an ETag the request is conditional.
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
	page, err := decodeList(r.header, r.body, c.fullID(""), length)
	if err != nil {
		return Page{}, reading.as(Unusable, err.Error())
	}
	reading = reading.as(Given, "")
	reading.ETag = r.header.Get("ETag")
	return page, reading
}

// Renew replaces the shared token with one that is requested after the moment. On
// an error the old token stays in use.
func (c *Client) Renew(ctx context.Context, moment time.Time) error {
	return c.tokens.newer(ctx, moment)
}

// Versions requests the numbers of a variable's stored values, in ascending order.
// There are none if the variable was never set. The numbers restart if the variable
// is declared anew. The reading is Missing if the variable is not declared or not
// visible.
func (c *Client) Versions(ctx context.Context, id string) ([]uint64, Reading) {
	if err := CheckID(id); err != nil {
		return nil, Reading{Err: err}
	}
	req, err := pathEscaped(c.api.ResourceRequest(c.fullID(id)))
	r, reading := c.reading(ctx, nil, KindResource, fmt.Sprintf("%q", id), req, err)
	if r == nil {
		return nil, reading
	}
	if r.status == http.StatusNotFound && isJSON(r.header) {
		return nil, reading.as(Missing, "")
	}
	var answer struct {
		ID      string
		Secrets *[]struct{ Version uint64 }
	}
	if r.status != http.StatusOK || !isJSON(r.header) || json.Unmarshal(r.body, &answer) != nil || answer.ID != c.fullID(id) || answer.Secrets == nil {
		return nil, reading.as(Unusable, notConjur)
	}
	numbers := make([]uint64, len(*answer.Secrets))
	for i, s := range *answer.Secrets {
		numbers[i] = s.Version
	}
	return numbers, reading.as(Given, "")
}

// VariableAt requests a variable's value at a version.
func (c *Client) VariableAt(ctx context.Context, id string, version uint64) (secret.Value, Reading) {
	req, err := c.api.RetrieveSecretWithVersionRequest(c.fullID(id), int(version))
	r, reading := c.reading(ctx, nil, KindVariable, fmt.Sprintf("%q", id), req, err)
	if r == nil || r.status != http.StatusOK {
		return secret.Value{}, reading
	}
	v := c.value(id, r, reading)
	return v.Found[id], v.Reading
}
