package removal

import (
	"strings"
	"time"
)

// fate is the expected effect on the delivered content.
type fate string

const (
	// keeps: nothing changes during the fault; afterwards new values arrive.
	keeps fate = "keeps"
	// goes: the content with the variable exists after the first poll or attempt, and is
	// removed after the second. Nothing else changes. When the variable returns, so does the
	// content.
	goes fate = "goes after 2"
	// holds: so many variables are gone that the brake delays the removal, and reports that
	// once.
	holds fate = "holds"
	// passes: as holds, and the content is removed when the hold ends.
	passes fate = "holds, then goes"
	// follows: the content changes to the server's present values.
	follows fate = "follows"
)

// row is one line of the table: an event during delivery, and its effect.
type row struct {
	name    string
	happens func(w *world) (over func())
	then    fate
	with    setting
}

// The table lists the possible answers of Conjur or of a gateway. Only two of them remove
// anything: Conjur's own 404 that names the variable, and a bare 403 that Conjur's other
// answers confirm. Both count only if Conjur knows the identity, by the token of the request
// and by a new one.
var table = []row{
	// The two answers that remove, from Conjur itself.
	{"the variable is deleted", deletes, goes, setting{}},
	{"the right to read is taken away", denies("execute"), goes, setting{}},
	{"all rights are taken away", denies("read, execute"), goes, setting{}},
	{"404 that names it", variable(says(404, jsonT, gone(account, lost))), goes, setting{}},
	{"404 that names it, v2 content type", variable(says(404, "application/x.secretsmgr.v2beta+json", gone(account, lost))), goes, setting{}},

	// A 404 that Conjur did not send about this variable.
	{"404 empty", variable(bare(404)), keeps, setting{}},
	{"404 empty JSON", variable(says(404, jsonT, "")), keeps, setting{}},
	{"404 page", variable(says(404, html, page)), keeps, setting{}},
	{"404 plain text", variable(says(404, text, "404 page not found\n")), keeps, setting{}},
	{"404 JSON of a gateway", variable(says(404, jsonT, `{"code":404,"message":"no Route matched with those values"}`)), keeps, setting{}},
	{"404 in Conjur's words as a page", variable(says(404, html, gone(account, lost))), keeps, setting{}},
	{"404 in Conjur's words, truncated", variable(says(404, jsonT, gone(account, lost)[:70])), keeps, setting{}},
	{"404 in Conjur's words, cut off", variable(hangUp("HTTP/1.1 404 Not Found\r\nContent-Type: application/json\r\nContent-Length: 200\r\n\r\n" + gone(account, lost))), keeps, setting{}},
	{"404 about another account", variable(says(404, jsonT, gone("prod", lost))), keeps, setting{}},
	{"404 about another variable", variable(says(404, jsonT, gone(account, lost+"s"))), keeps, setting{}},
	{"404 about another that is in use", variable(says(404, jsonT, gone(account, "app/user"))), keeps, setting{}},
	{"404 about a parent", variable(says(404, jsonT, gone(account, "app"))), keeps, setting{}},
	{"404 about the policy", variable(says(404, jsonT, strings.ReplaceAll(gone(account, lost), "variable:", "policy:"))), keeps, setting{}},
	{"404 of a resource", variable(says(404, jsonT, `{"error":{"code":"not_found","message":"Variable '{lost}' not found in account 'dev'","target":"variable"}}`)), keeps, setting{}},
	{"404 with another code", variable(says(404, jsonT, strings.ReplaceAll(gone(account, lost), "CONJ00076E", "CONJ00190W"))), keeps, setting{}},
	{"404 for everything", scripted(everywhere(says(404, jsonT, gone(account, lost)))), keeps, setting{}},

	// A 403 that no other answer confirms.
	{"bare 403, and the check says yes", variable(bare(403)), keeps, setting{}},
	{"403 page", variable(says(403, html, page)), keeps, setting{}},
	{"bare 403, and bare 404 for whatever is asked of resources", scripted(about(bare(403)), toAll(check, bare(404))), keeps, setting{}},
	{"bare 403 for all values, bare 404 for all resources", scripted(everyData(bare(403)), toAll(check, bare(404))), keeps, setting{}},
	{"bare 403 for all values, bare 404 for all checks", scripted(everyData(bare(403)), toChecks(bare(404))), keeps, setting{}},
	{"bare 403, and a check says no that the resource contradicts", scripted(about(bare(403)), aboutCheck("execute", bare(404))), keeps, setting{}},
	{"bare 403, and the resource is another one", scripted(about(bare(403)), aboutCheck("execute", bare(404)), aboutCheck("", says(200, jsonT, `{"id":"dev:variable:app/other","permissions":[]}`))), keeps, setting{}},
	{"bare 403, and no answer about the resource", scripted(about(bare(403)), aboutCheck("execute", bare(404)), aboutCheck("", hangUp(""))), keeps, setting{}},
	{"bare 403, and the resource is a page", scripted(about(bare(403)), aboutCheck("execute", bare(404)), aboutCheck("", says(200, html, page))), keeps, setting{}},
	{"bare 403, and no check is answered yes", scripted(about(bare(403)), toChecks(bare(404)), aboutCheck("", says(200, jsonT, `{"id":"dev:variable:{lost}","permissions":[]}`))), keeps, setting{}},
	{"403 page, and the check says no", scripted(about(says(403, html, page)), toAll(check, bare(404))), keeps, setting{}},
	{"403 JSON", variable(says(403, jsonT, `{"error":{"code":"forbidden"}}`)), keeps, setting{}},
	{"403 with Conjur's 404 body", variable(says(403, jsonT, gone(account, lost))), keeps, setting{}},
	{"403 IP address rejected", scripted(everywhere(says(403, text, "IP address rejected"))), keeps, setting{}},
	{"bare 403 for everything", scripted(everywhere(bare(403))), keeps, setting{}},
	{"bare 403 for everything but logins", scripted(allBut(login, bare(403))), keeps, setting{}},
	{"bare 403, and a page for the check", scripted(about(bare(403)), toAll(check, says(404, html, page))), keeps, setting{}},
	{"bare 403, and 404 JSON for the check", scripted(about(bare(403)), toAll(check, says(404, jsonT, `{"error":{"code":"not_found","target":"variable"}}`))), keeps, setting{}},
	{"bare 403, and 403 for the check", scripted(about(bare(403)), toAll(check, bare(403))), keeps, setting{}},
	{"bare 403, and 500 for the check", scripted(about(bare(403)), toAll(check, bare(500))), keeps, setting{}},
	{"bare 403, and no answer to the check", scripted(about(bare(403)), toAll(check, hangUp(""))), keeps, setting{}},

	// Conjur's own answer, but Conjur does not know the identity.
	{"404 that names it, whoami 401", scripted(about(says(404, jsonT, gone(account, lost))), toAll(whoami, bare(401))), keeps, setting{}},
	{"404 that names it, whoami 404", scripted(about(says(404, jsonT, gone(account, lost))), toAll(whoami, bare(404))), keeps, setting{}},
	{"404 that names it, whoami 500", scripted(about(says(404, jsonT, gone(account, lost))), toAll(whoami, bare(500))), keeps, setting{}},
	{"404 that names it, whoami a page", scripted(about(says(404, jsonT, gone(account, lost))), toAll(whoami, says(200, html, page))), keeps, setting{}},
	{"404 that names it, whoami of another account", scripted(about(says(404, jsonT, gone(account, lost))), toAll(whoami, says(200, jsonT, `{"account":"prod","username":"host/hosts/web"}`))), keeps, setting{}},
	{"404 that names it, whoami right but 403", scripted(about(says(404, jsonT, gone(account, lost))), toAll(whoami, says(403, jsonT, `{"account":"dev","username":"host/hosts/web"}`))), keeps, setting{}},
	{"404 that names it, whoami of nobody", scripted(about(says(404, jsonT, gone(account, lost))), toAll(whoami, says(200, jsonT, `{"account":"dev"}`))), keeps, setting{}},
	{"404 that names it, whoami closed", scripted(about(says(404, jsonT, gone(account, lost))), toAll(whoami, hangUp(""))), keeps, setting{}},
	{"404 that names it, no new login", scripted(about(says(404, jsonT, gone(account, lost))), toAll(login, bare(401))), keeps, setting{}},
	{"404 that names it, no login for an outage", scripted(about(says(404, jsonT, gone(account, lost))), toAll(login, bare(503))), keeps, setting{}},
	{"404 that names it, whoever asks another time", changing, keeps, setting{}},
	{"404 that names it, at every other look", everyOther, keeps, setting{}},

	// Every other status, with the body that would count with a 404.
	{"200 with Conjur's 404 body", variable(says(200, html, gone(account, lost))), keeps, setting{}},
	{"200 page", variable(says(200, html, page)), keeps, setting{}},
	{"200 empty", variable(says(200, "application/octet-stream", "")), keeps, setting{}},
	{"202 empty", variable(bare(202)), keeps, setting{}},
	{"204", variable(bare(204)), keeps, setting{}},
	{"206 with Conjur's 404 body", variable(says(206, jsonT, gone(account, lost))), keeps, setting{}},
	{"301 to elsewhere", variable(says(301, html, page, "Location", "https://127.0.0.1:1/404")), keeps, setting{}},
	{"302 to a login page", scripted(everywhere(says(302, html, page, "Location", "https://127.0.0.1:1/login"))), keeps, setting{}},
	{"302 to Conjur's words", scripted(about(says(302, html, "", "Location", "/moved")), moved), keeps, setting{}},
	{"307 to Conjur's words", scripted(about(says(307, html, "", "Location", "/moved")), moved), keeps, setting{}},
	{"304 though nothing was asked for", variable(bare(304)), keeps, setting{}},
	{"307", variable(says(307, html, "", "Location", "/secrets/404")), keeps, setting{}},
	{"400 empty", variable(bare(400)), keeps, setting{}},
	{"400 with Conjur's 404 body", variable(says(400, jsonT, gone(account, lost))), keeps, setting{}},
	{"401 for the data", scripted(everyData(says(401, text, "Unauthorized: Invalid token"))), keeps, setting{}},
	{"401 with Conjur's 404 body", variable(says(401, jsonT, gone(account, lost))), keeps, setting{}},
	{"401 for everything", scripted(everywhere(bare(401))), keeps, setting{}},
	{"402", variable(bare(402)), keeps, setting{}},
	{"405", variable(says(405, jsonT, gone(account, lost))), keeps, setting{}},
	{"406", variable(says(406, jsonT, `{"error":{"code":"not_acceptable"}}`)), keeps, setting{}},
	{"407 of a proxy", scripted(everywhere(says(407, html, page))), keeps, setting{}},
	{"408", variable(bare(408)), keeps, setting{}},
	{"409", variable(says(409, jsonT, gone(account, lost))), keeps, setting{}},
	{"410 gone", variable(says(410, jsonT, gone(account, lost))), keeps, setting{}},
	{"410 empty", variable(bare(410)), keeps, setting{}},
	{"411", variable(bare(411)), keeps, setting{}},
	{"413", variable(bare(413)), keeps, setting{}},
	{"414", variable(bare(414)), keeps, setting{}},
	{"416", variable(bare(416)), keeps, setting{}},
	{"418", variable(bare(418)), keeps, setting{}},
	{"421", variable(bare(421)), keeps, setting{}},
	{"422 with Conjur's 404 body", variable(says(422, jsonT, gone(account, lost))), keeps, setting{}},
	{"423", variable(bare(423)), keeps, setting{}},
	{"425", variable(bare(425)), keeps, setting{}},
	{"426", variable(bare(426)), keeps, setting{}},
	{"428", variable(bare(428)), keeps, setting{}},
	{"429 that wants a pause", scripted(everyData(says(429, html, "", "Retry-After", "1"))), keeps, setting{}},
	{"431", variable(bare(431)), keeps, setting{}},
	{"444", variable(bare(444)), keeps, setting{}},
	{"451", variable(bare(451)), keeps, setting{}},
	{"495", variable(bare(495)), keeps, setting{}},
	{"499", variable(bare(499)), keeps, setting{}},
	{"500 empty", variable(bare(500)), keeps, setting{}},
	{"500 with Conjur's 404 body", variable(says(500, jsonT, gone(account, lost))), keeps, setting{}},
	{"500 for everything", scripted(everywhere(bare(500))), keeps, setting{}},
	{"501", variable(bare(501)), keeps, setting{}},
	{"502 page of a proxy", scripted(everywhere(says(502, html, page))), keeps, setting{}},
	{"503 whose body says 404", scripted(everyData(says(503, jsonT, `{"error":{"code":"404","message":"not found"}}`))), keeps, setting{}},
	{"503 with Conjur's 404 body", variable(says(503, jsonT, gone(account, lost))), keeps, setting{}},
	{"503 that wants a pause", scripted(everywhere(says(503, html, "", "Retry-After", "1"))), keeps, setting{}},
	{"504", scripted(everyData(bare(504))), keeps, setting{}},
	{"505", variable(bare(505)), keeps, setting{}},
	{"507", variable(bare(507)), keeps, setting{}},
	{"508", variable(bare(508)), keeps, setting{}},
	{"511 of a captive portal", scripted(everywhere(says(511, html, page))), keeps, setting{}},
	{"520", variable(says(520, jsonT, gone(account, lost))), keeps, setting{}},
	{"599", variable(bare(599)), keeps, setting{}},

	// No answer. The errors contain numbers such as 404, which a reader of texts would
	// misunderstand.
	{"refused, 404 in port and host", refuses("127.0.0.1:40404"), keeps, setting{host: "not-found-404.status-403.test"}},
	{"refused, 403 in port and host", refuses("127.0.0.1:40301"), keeps, setting{host: "forbidden-403.test"}},
	{"reset, 404 in host and variable", scripted(everywhere(reset(""))), keeps, setting{host: "404.test", lost: "app/404-not-found"}},
	{"reset, 403 in host and variable", scripted(everywhere(reset(""))), keeps, setting{host: "403.test", lost: "app/403 Forbidden"}},
	{"reset for it alone, 404 in the variable", variable(reset("")), keeps, setting{lost: "app/404-not-found"}},
	{"reset for it alone, 403 in the variable", variable(reset("")), keeps, setting{lost: "app/403 Forbidden"}},
	{"reset in the body", scripted(everyData(reset("HTTP/1.1 404 Not Found\r\nContent-Type: application/json\r\nContent-Length: 900\r\n\r\n{"))), keeps, setting{lost: "app/CONJ00076E is empty or not found."}},
	{"closed without a word", scripted(everywhere(hangUp(""))), keeps, setting{}},
	{"garbage instead of HTTP", scripted(everywhere(hangUp("404 Not Found\r\n\r\n" + gone(account, lost)))), keeps, setting{}},
	{"an old protocol", scripted(everyData(hangUp("HTTP/0.9 404 Not Found\r\n\r\n" + gone(account, lost)))), keeps, setting{}},
	{"no such host", unknownHost, keeps, setting{host: "not-found-404.test"}},
	{"slow", scripted(everyData(silent(""))), keeps, setting{timeout: 100 * time.Millisecond}},
	{"slow in the middle of a 404", scripted(everyData(silent(`{"error":{"code":"not_found"`))), keeps, setting{timeout: 100 * time.Millisecond}},
	{"slow for everything", scripted(everywhere(silent(""))), keeps, setting{timeout: 100 * time.Millisecond}},

	// Another server answers.
	{"the certificate is another authority's", wrongCA, keeps, setting{}},
	{"the certificate is another host's", wrongName, keeps, setting{}},
	{"the token has expired by the server's clock", expires, keeps, setting{}},
	{"an empty server with other keys", emptyServer, keeps, setting{}},
	{"the identity is deleted", deletesHost, keeps, setting{}},
	{"the identity is deleted, and its token sees nothing", deletesHostAndAll, keeps, setting{}},
	{"the identity has another key", rotatesKey, keeps, setting{}},

	// Many variables at once.
	{"the policy of the variables is replaced by an empty one", emptiesPolicies, holds, setting{}},
	{"the same, and time passes", emptiesPolicies, passes, setting{hold: 100 * time.Millisecond}},
	{"all is replaced by an empty policy", emptiesRoot, keeps, setting{}},
	{"all rights on all are taken away", deniesAll("read, execute"), holds, setting{}},
	{"all are forbidden", deniesAll("execute"), holds, setting{}},
	{"the same, and time passes", deniesAll("execute"), passes, setting{hold: 100 * time.Millisecond}},
	{"404 that names whatever is asked", scripted(namesAll), holds, setting{}},

	// The whole server is replaced.
	{"a backup from before the variable", olderWithoutVariable, goes, setting{}},
	{"a backup with the older value", olderValue, follows, setting{}},
	{"a backup from before most variables", olderWithoutMost, holds, setting{}},
	{"a backup from before the identity", olderWithoutHost, keeps, setting{}},
}
