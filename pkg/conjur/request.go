package conjur

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/cyberark/conjur-api-go/conjurapi"
	"github.com/cyberark/conjur-api-go/conjurapi/logging"
)

// newBuilder makes the library's client, of which only the methods that build
// requests are used. Nothing secret is given to it.
func newBuilder(config *Config) (*conjurapi.Client, error) {
	logging.ApiLog.SetOutput(io.Discard)
	settings := conjurapi.Config{
		ApplianceURL:      strings.TrimRight(config.ApplianceURL, "/"),
		Account:           config.Account,
		CredentialStorage: conjurapi.CredentialStorageNone,
		// Given explicitly, since the library else probes the network for it.
		// It decides about one URL only: with this value the route that
		// answers per variable has no account in it.
		Environment: conjurapi.EnvironmentSaaS,
	}
	settings.SetKeychainNamespaceResolved(true) // do not read the environment
	api, err := conjurapi.NewClient(settings, conjurapi.Telemetry{
		IntegrationName:    "Syncer",
		IntegrationType:    "cybr-secretsmanager",
		IntegrationVersion: config.Version,
		VendorName:         "SecretSync",
	})
	if err != nil {
		return nil, fmt.Errorf("request builder: %w", err)
	}
	return api, nil
}

// resource is a variable's full id. The builder is always given full ids,
// since it guesses wrong for short ones with a colon.
func (c *Client) resource(id string) string { return c.config.Account + ":variable:" + id }

// longestID is how long an id may be in a URL. A server may close the connection
// after a request line over its bound, or not answer until it is tired of
// waiting; the genuine one takes a path of 8,192 bytes.
const longestID = 7000

// CheckID returns an error for an id that no variable can be asked for by: its URL
// would mean something else, or the server answers 400 or 422 for the whole batch.
func CheckID(id string) error {
	isControl := func(r rune) bool { return r < ' ' || r == 0x7f }
	if n := len(url.PathEscape(id)); n > longestID {
		return fmt.Errorf("%.100q… is not a variable's id: it takes %d bytes in a URL, and at most %d are sent", id, n, longestID)
	}
	if id == "" || id == "." || id == ".." || !utf8.ValidString(id) || strings.ContainsFunc(id, isControl) {
		return fmt.Errorf("%q is not a variable's id", id)
	}
	return nil
}

// Batchable reports whether a batch can ask for an id. The server splits the
// list at commas after decoding it.
func Batchable(id string) bool { return !strings.Contains(id, ",") }

// shortForm undoes the escapes that a query does not need (RFC 3986, 3.4), so
// that a request line holds more ids.
var shortForm = strings.NewReplacer("%3A", ":", "%2F", "/", "%2C", ",", "+", "%20")

// LineLength returns the length of a batch's request line with these ids. Each id
// adds the same, whatever the others are.
func (c *Client) LineLength(ids ...string) int {
	n := len("GET ") + len(c.base) + len("/secrets?variable_ids=") + len(" HTTP/1.1\r\n")
	for _, id := range ids {
		n += len(shortForm.Replace(url.QueryEscape(c.resource(id)))) + len(",")
	}
	return n
}

func (c *Client) batchRequest(ids []string) (*http.Request, error) {
	full := make([]string, len(ids))
	for i, id := range ids {
		full[i] = c.resource(id)
	}
	req, err := c.api.RetrieveBatchSecretsRequest(full, true)
	if err != nil {
		return nil, err
	}
	// The builder puts a slash behind the path, which the server's own clients
	// do not send and not every router takes.
	req.URL.Path, req.URL.RawPath = strings.TrimSuffix(req.URL.Path, "/"), strings.TrimSuffix(req.URL.RawPath, "/")
	req.URL.RawQuery = shortForm.Replace(req.URL.RawQuery)
	return req, nil
}

// pathEscaped mends a request whose path ends with an id. The builder escapes it
// as in a query, where "+" is a space; in a path it is not.
func pathEscaped(req *http.Request, err error) (*http.Request, error) {
	if err != nil {
		return nil, err
	}
	path := req.URL.EscapedPath()
	cut := strings.LastIndexByte(path, '/') + 1
	req.URL.RawPath = path[:cut] + strings.ReplaceAll(path[cut:], "+", "%20")
	req.URL.Path, err = url.PathUnescape(req.URL.RawPath)
	return req, err
}

// conditional returns the request with a condition on an ETag, if there is one.
func conditional(req *http.Request, etag string) *http.Request {
	if etag != "" {
		req = req.Clone(req.Context())
		req.Header.Set("If-None-Match", etag)
	}
	return req
}
