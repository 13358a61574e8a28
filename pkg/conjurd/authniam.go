package conjurd

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/secretsync/syncer/pkg/conjurd/internal/store"
)

const (
	stsTimeout = 10 * time.Second
	stsQuery   = "/?Action=GetCallerIdentity&Version=2011-06-15"
	maxSTS     = 64 << 10
)

var (
	awsRegion     = regexp.MustCompile(`^([a-z]{2}(-gov)?-[a-z]+-\d|global)$`)
	awsCredential = regexp.MustCompile(`Credential=[^/,]+/\d{8}/([^/]+)/`)
	signedHeaders = regexp.MustCompile(`SignedHeaders=([^,\s]+)`)
)

// authenticateIAM returns an access token for the host that the path names. AWS
// must confirm that a role signed the request in the body. The host's id must end
// in the role's account and name.
func (s *Server) authenticateIAM(c *call) reply {
	a := newAuthenticator(authnIAM, c)
	role := roleOf(a.account, c.vars["login"])
	return s.decide(c, a, role, s.checkIAM(c, a, role))
}

func (s *Server) checkIAM(c *call, a *authenticator, role string) error {
	body, err := c.body(maxCredential)
	if err != nil || len(body) == 0 {
		return errNoToken
	}
	if err := s.view(c.ctx(), a.readSettings); err != nil {
		return err
	}
	headers, err := awsHeaders(body, a.setting["optional-signed-headers"])
	if err != nil {
		return err
	}
	account, name, err := s.callerIdentity(c.ctx(), headers)
	if err != nil {
		return err
	}
	if !strings.HasSuffix(role, "/"+account+"/"+name) {
		return fmt.Errorf("the request is signed by the role %s of the account %s, with which the host's id does not end", name, account)
	}
	return s.admit(c, a, role, func(*store.Object) error { return nil })
}

// awsHeaders reads the body, a JSON object of header fields. It checks that every
// signed field is present, and that no other field could change the request.
func awsHeaders(body []byte, optional string) (http.Header, error) {
	var fields map[string]string
	if err := json.Unmarshal(body, &fields); err != nil {
		return nil, errors.New("the body is not a JSON object of header fields")
	}
	headers := http.Header{}
	for name, value := range fields {
		headers.Set(name, value)
	}
	signed := signedHeaders.FindStringSubmatch(headers.Get("Authorization"))
	if signed == nil {
		return nil, errors.New("the header Authorization does not list the signed headers")
	}
	known := append([]string{"host", "authorization", "x-amz-date", "x-amz-security-token", "x-amz-content-sha256"},
		strings.Split(strings.ToLower(optional), ";")...)
	for name := range strings.SplitSeq(strings.ToLower(signed[1]), ";") {
		switch {
		case !slices.Contains(known, name):
			return nil, fmt.Errorf("the signed header %q is not among those that are allowed", name)
		case headers.Get(name) == "":
			return nil, fmt.Errorf("the signed header %q is missing", name)
		}
	}
	for name := range headers {
		if !slices.Contains(known, strings.ToLower(name)) {
			headers.Del(name)
		}
	}
	return headers, nil
}

// callerIdentity asks AWS who signed the headers, in the region that the headers
// name. Headers signed for us-east-1 may be for the global address.
func (s *Server) callerIdentity(ctx context.Context, headers http.Header) (account, name string, err error) {
	host := headers.Get("Host")
	region, ok := strings.CutSuffix(strings.TrimPrefix(host, "sts."), ".amazonaws.com")
	if host == "sts.amazonaws.com" {
		region, ok = "", true
	}
	if !ok || !strings.HasPrefix(host, "sts.") {
		return "", "", errors.New("the header Host is not that of AWS's STS")
	}
	if region == "" {
		if found := awsCredential.FindStringSubmatch(headers.Get("Authorization")); found != nil {
			region = found[1]
		}
	}
	if !awsRegion.MatchString(region) {
		return "", "", errors.New("the region is none of AWS's")
	}
	addresses := []string{"sts." + region + ".amazonaws.com"}
	switch region {
	case "global":
		addresses = []string{"sts.amazonaws.com"}
	case "us-east-1":
		addresses = append(addresses, "sts.amazonaws.com")
	}
	for _, address := range addresses {
		if account, name, err = s.askSTS(ctx, address, headers); err == nil {
			return account, name, nil
		}
	}
	return "", "", err
}

func (s *Server) askSTS(ctx context.Context, address string, headers http.Header) (account, name string, err error) {
	ctx, cancel := context.WithTimeout(ctx, stsTimeout)
	defer cancel()
	base := "https://" + address
	if s.opt.STS != "" {
		base = s.opt.STS
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+stsQuery, nil)
	if err != nil {
		return "", "", err
	}
	req.Header, req.Host = headers.Clone(), headers.Get("Host")
	req.Header.Del("Host")
	client := &http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	res, err := client.Do(req)
	if err != nil {
		return "", "", err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return "", "", fmt.Errorf("%s answers %s", address, res.Status)
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, maxSTS))
	if err != nil {
		return "", "", err
	}
	var answer struct {
		Result struct{ Arn, Account string } `xml:"GetCallerIdentityResult"`
	}
	if err := xml.Unmarshal(body, &answer); err != nil {
		return "", "", fmt.Errorf("%s answers something else than XML", address)
	}
	// arn:aws:sts::123456789012:assumed-role/my-role/i-0123456789
	arn := strings.SplitN(answer.Result.Arn, ":", 6)
	resource := strings.Split(arn[len(arn)-1], "/")
	if len(arn) != 6 || len(resource) < 2 || resource[1] == "" || answer.Result.Account == "" {
		return "", "", fmt.Errorf("%s names no role", address)
	}
	return answer.Result.Account, resource[1], nil
}
