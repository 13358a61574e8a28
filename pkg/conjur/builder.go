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

// newBuilder returns the library's client. Only its methods that build requests are
// used. It receives no secrets.
func newBuilder(config *Config) (*conjurapi.Client, error) {
	logging.ApiLog.SetOutput(io.Discard)
	settings := conjurapi.Config{
		ApplianceURL:      strings.TrimRight(config.ApplianceURL, "/"),
		Account:           config.Account,
		CredentialStorage: conjurapi.CredentialStorageNone,
		// Without an explicit value the library would probe the network. The value
		// affects one URL only: it removes the account from the route that answers
		// per variable.
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

// fullID returns a variable's full id. The builder always receives full ids,
// because it misinterprets short ones with a colon.
func (c *Client) fullID(id string) string { return c.config.Account + ":variable:" + id }

// longestID bounds an id in a URL. For a longer request line, a server may close
// the connection, or delay its answer until a timeout. The genuine server accepts a
// path of 8,192 bytes.
const longestID = 7000

// CheckID returns an error for an id that cannot be requested. Its URL would have
// another meaning, or the server would answer 400 or 422 for the whole batch.
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

// Batchable reports whether a batch can request an id. The server decodes the list
// before it splits it at commas.
func Batchable(id string) bool { return !strings.Contains(id, ",") }

// shortForm reverses escapes that a query does not need (RFC 3986, 3.4), so that a
// request line holds more ids.
var shortForm = strings.NewReplacer("%3A", ":", "%2F", "/", "%2C", ",", "+", "%20")

// LineLength returns the length of a batch's request line for the ids. Each id adds
// the same length, regardless of the others.
func (c *Client) LineLength(ids ...string) int {
	n := len("GET ") + len(c.base) + len("/secrets?variable_ids=") + len(" HTTP/1.1\r\n")
	for _, id := range ids {
		n += lengthInLine(c.fullID("")) + lengthInLine(id) + len(",")
	}
	return n
}

// lengthInLine returns the length of a text after its escapes, without making them.
func lengthInLine(text string) (n int) {
	for i := range len(text) {
		switch b := text[i]; {
		case 'a' <= b && b <= 'z', 'A' <= b && b <= 'Z', '0' <= b && b <= '9', strings.IndexByte("-_.~:/,", b) >= 0:
			n++
		default:
			n += len("%00")
		}
	}
	return n
}

func (c *Client) batchRequest(ids []string) (*http.Request, error) {
	full := make([]string, len(ids))
	for i, id := range ids {
		full[i] = c.fullID(id)
	}
	req, err := c.api.RetrieveBatchSecretsRequest(full, true)
	if err != nil {
		return nil, err
	}
	// The builder appends a slash to the path. The server's own clients do not send
	// one, and some routers reject it.
	req.URL.Path, req.URL.RawPath = strings.TrimSuffix(req.URL.Path, "/"), strings.TrimSuffix(req.URL.RawPath, "/")
	req.URL.RawQuery = shortForm.Replace(req.URL.RawQuery)
	return req, nil
}

// pathEscaped corrects a request whose path ends with an id. The builder escapes
// the id for a query, in which "+" is a space.
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

// conditional makes the request conditional on the ETag, unless the ETag is empty.
func conditional(req *http.Request, etag string) *http.Request {
	if req.Header.Del("If-None-Match"); etag != "" {
		req.Header.Set("If-None-Match", etag)
	}
	return req
}
