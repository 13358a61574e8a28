package conjurd

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/secretsync/syncer/pkg/conjurd/internal/policy"
	"github.com/secretsync/syncer/pkg/conjurd/internal/slosilo"
)

// identify verifies the request's token and records its role. Without a valid token
// it returns the refusal and false.
func (s *Server) identify(c *call) (reply, bool) {
	encoded, ok := tokenOf(c.r)
	if !ok {
		body := "Authorization missing"
		if c.wantsV2() {
			body = ""
		}
		return refusal(http.StatusUnauthorized, body), false
	}
	account, claims, err := s.verify(encoded)
	switch {
	case errors.Is(err, slosilo.ErrMalformed):
		return refusal(http.StatusUnauthorized, "Malformed authorization token"), false
	case errors.Is(err, slosilo.ErrClaims):
		return refusal(http.StatusUnauthorized, "token contains unrecognized claims"), false
	case err != nil:
		return refusal(http.StatusUnauthorized, "Unauthorized: Invalid token"), false
	case !claims.AllowsFrom(c.clientIP()):
		return refusal(http.StatusForbidden, "IP address rejected"), false
	}
	c.claims = claims
	c.role = roleOf(account, claims.Subject)
	return reply{}, true
}

// refusal answers before any handler runs.
func refusal(status int, body string) reply {
	return reply{status: status, kind: typeBare, body: []byte(body), bare: true}
}

// tokenOf returns the text between the quotes of the Authorization header. The
// quotes are required.
func tokenOf(r *http.Request) (string, bool) {
	rest, ok := strings.CutPrefix(r.Header.Get("Authorization"), `Token token="`)
	end := strings.LastIndexByte(rest, '"')
	if !ok || end < 0 {
		return "", false
	}
	return rest[:end], true
}

// verified is a token whose signature was right.
type verified struct {
	account string
	claims  slosilo.Claims
}

const (
	// mostVerified bounds the verified tokens that a server remembers.
	mostVerified = 4096
	// longestVerified bounds each of them in bytes. A token has about 1 KiB, but spaces
	// in it may make it longer.
	longestVerified = 2 << 10
)

// verify verifies a token in base64. It returns the account and the token's claims. A token
// that is used often is parsed and its signature checked once.
func (s *Server) verify(encoded string) (string, slosilo.Claims, error) {
	if v, ok := s.verified.Get(encoded); ok {
		v := v.(verified)
		claims, err := v.claims.At(s.now())
		return v.account, claims, err
	}
	t, err := slosilo.Parse(encoded)
	if err != nil {
		return "", slosilo.Claims{}, err
	}
	id, err := t.KeyID()
	if err != nil {
		return "", slosilo.Claims{}, err
	}
	k, ok := s.keys[id]
	if !ok {
		return "", slosilo.Claims{}, slosilo.ErrInvalid
	}
	claims, err := k.key.Verify(t, s.now())
	if err == nil && len(encoded) <= longestVerified {
		s.verified.Add(strings.Clone(encoded), verified{k.account, claims})
	}
	return k.account, claims, err
}

// grant answers with a new token for role.
func (s *Server) grant(c *call, role policy.Ref) reply {
	for _, k := range s.keys {
		if k.account != role.Account() {
			continue
		}
		now := s.now()
		t, err := k.key.Sign(slosilo.Claims{
			IssuedAt:  now.Unix(),
			Subject:   loginOf(role),
			ExpiresAt: now.Add(s.ttl(role)).Unix(),
		})
		if err != nil {
			return s.broken(c, err)
		}
		return tokenReply(c, t)
	}
	return empty(http.StatusUnauthorized)
}

// tokenReply sends the token as JSON, or that JSON in base64 if the request asks
// for it.
func tokenReply(c *call, t *slosilo.Token) reply {
	rep := jsonReply(http.StatusOK, t)
	for enc := range strings.SplitSeq(c.r.Header.Get("Accept-Encoding"), ",") {
		if strings.EqualFold(strings.TrimSpace(enc), "base64") {
			rep.kind = typeText
			rep.body = []byte(base64.StdEncoding.EncodeToString(rep.body))
			rep.header = map[string]string{"Content-Encoding": "base64"}
		}
	}
	return rep
}

// whoami answers with the caller's identity.
func (s *Server) whoami(c *call) reply {
	type answer struct {
		ClientIP      string  `json:"client_ip"`
		UserAgent     *string `json:"user_agent"`
		Account       string  `json:"account"`
		Username      string  `json:"username"`
		TokenIssuedAt stamp   `json:"token_issued_at"`
	}
	a := answer{
		ClientIP: c.clientIP().String(),
		Account:  policy.Ref(c.role).Account(), Username: c.claims.Subject,
		TokenIssuedAt: stamp(time.Unix(c.claims.IssuedAt, 0)),
	}
	if ua := c.r.Header.Get("User-Agent"); ua != "" {
		a.UserAgent = &ua
	}
	return jsonReply(http.StatusOK, a)
}

// stamp is a time in the genuine server's format.
type stamp time.Time

func (t stamp) MarshalJSON() ([]byte, error) {
	return json.Marshal(time.Time(t).UTC().Format("2006-01-02T15:04:05.000-07:00"))
}
