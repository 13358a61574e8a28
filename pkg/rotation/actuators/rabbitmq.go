package actuators

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/secretsync/syncer/internal/advice"
	"github.com/secretsync/syncer/internal/brief"
	"github.com/secretsync/syncer/pkg/rotation/versions"
	"github.com/secretsync/syncer/pkg/secret"
)

// RabbitMQ is a [Server] whose users are changed by the management API. A global parameter
// beside each user holds the mark. The API compares nothing before it writes, so [Turns]
// needs Current. The fields up to Users are set.
type RabbitMQ struct {
	Addresses []string // host:port of AMQP; every one must accept a login
	API       string   // https://host:port
	// Admin returns the administrator's login, {"username":…,"password":…}. The user needs
	// the tag administrator.
	Admin func(context.Context) (secret.Value, error)
	VHost string
	Users []string // of the set

	CA    string // file with the trusted authorities; "": the system's
	Plain bool   // without TLS
}

// settle is how long RabbitMQ may take to list a connection that is open.
const settle = time.Second

var errAbsent = errors.New("it does not exist")

type rabbitUser struct {
	Hash      string   `json:"password_hash"`
	Algorithm string   `json:"hashing_algorithm,omitempty"`
	Tags      []string `json:"tags"`
}

// onUser returns a path of the API. userHere stands for the user's name.
func onUser(path, user string) string {
	return strings.ReplaceAll(path, userHere, url.PathEscape(user))
}

const (
	userHere = "{user}" // no escaped name contains it
	ofUser   = "users/" + userHere
	ofMark   = "global-parameters/syncer-" + userHere
	ofLimits = "user-limits/" + userHere
	ofOpen   = "connections/username/" + userHere
	openMost = ofLimits + "/max-connections"
	shut     = `{"value":0}` // the limit of a refused user
)

func permissions(vhost string) string { return "permissions/" + url.PathEscape(vhost) + "/" + userHere }

func (r *RabbitMQ) marks(ctx context.Context, users []string) (marks map[string]mark, err error) {
	err = r.asAdmin(ctx, func(a *rabbitAPI) error {
		marks, err = a.readMarks(ctx, users)
		return err
	})
	return marks, err
}

func (a *rabbitAPI) readMarks(ctx context.Context, users []string) (map[string]mark, error) {
	marks := map[string]mark{}
	for _, user := range users {
		_, text, err := a.readUser(ctx, user)
		if errors.Is(err, errAbsent) {
			continue
		} else if err != nil {
			return nil, err
		}
		marks[user] = readMark(text)
	}
	return marks, nil
}

// readUser returns a user, and the text that holds its mark.
func (a *rabbitAPI) readUser(ctx context.Context, user string) (u rabbitUser, text string, err error) {
	if err := a.call(ctx, http.MethodGet, onUser(ofUser, user), nil, &u); err != nil {
		return u, "", err
	}
	var found struct{ Value any }
	if err = a.call(ctx, http.MethodGet, onUser(ofMark, user), nil, &found); errors.Is(err, errAbsent) {
		err = nil
	}
	text, _ = found.Value.(string)
	return u, text, err
}

func (a *rabbitAPI) setMark(ctx context.Context, user string, is mark, text string) error {
	return a.call(ctx, http.MethodPut, onUser(ofMark, user), map[string]string{"value": is.in(text)}, nil)
}

func (r *RabbitMQ) admit(ctx context.Context, user string, password []byte, next func(mark) (mark, error)) error {
	return r.asAdmin(ctx, func(a *rabbitAPI) error { return a.admitUser(ctx, user, password, next) })
}

// admitUser gives the user the rights of the primary's user too. Syncer sends a salted hash, so
// that the server never has the password before a login. The mark changes first, so that a
// late request finds the later mark.
func (a *rabbitAPI) admitUser(ctx context.Context, user string, password []byte, next func(mark) (mark, error)) error {
	u, text, err := a.readUser(ctx, user)
	if errors.Is(err, errAbsent) {
		return fmt.Errorf("%w; create it: %s", err, a.createUser(user))
	} else if err != nil {
		return err
	}
	is, err := next(readMark(text))
	if err == nil {
		err = a.setMark(ctx, user, is, text)
	}
	if err == nil {
		u.Tags, err = a.grant(ctx, user)
	}
	if err != nil {
		return err
	}
	if password != nil {
		salted := make([]byte, 4, 4+len(password))
		rand.Read(salted)
		sum := sha256.Sum256(append(salted, password...))
		clear(salted[4:cap(salted)])
		u.Hash, u.Algorithm = base64.StdEncoding.EncodeToString(slices.Concat(salted, sum[:])), "rabbit_password_hashing_sha256"
	}
	return a.call(ctx, http.MethodPut, onUser(ofUser, user), u, nil)
}

func makeAdministrator(user string, tags ...string) string {
	return fmt.Sprintf("rabbitmqctl set_user_tags %s %s", forShell(user), strings.Join(append(tags, "administrator"), " "))
}

// createUser returns the commands that create a user without a known password.
func (r *RabbitMQ) createUser(user string) string {
	return fmt.Sprintf(`rabbitmqctl add_user %s "$(openssl rand -hex 32)" && %s`, forShell(user), r.permit(user))
}

func forShell(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

func (r *RabbitMQ) permit(user string) string {
	return fmt.Sprintf("rabbitmqctl set_permissions -p %s %s '.*' '.*' '.*'", forShell(r.VHost), forShell(user))
}

func (r *RabbitMQ) refuse(ctx context.Context, user string, next func(mark) (mark, error)) error {
	return r.asAdmin(ctx, func(a *rabbitAPI) error { return a.refuseUser(ctx, user, next) })
}

// refuseUser first lets the user open no connection, and removes the password at the end. The
// limit also refuses a client whose password was checked just before, and which no list
// has yet. The tags stay. The mark changes last, because a revoked user is left as it is.
func (a *rabbitAPI) refuseUser(ctx context.Context, user string, next func(mark) (mark, error)) error {
	u, text, err := a.readUser(ctx, user)
	if errors.Is(err, errAbsent) {
		return errStands
	} else if err != nil {
		return err
	}
	is, err := next(readMark(text))
	if err == nil {
		err = a.call(ctx, http.MethodPut, onUser(openMost, user), json.RawMessage(shut), nil)
	}
	if err == nil && is.state == revoked {
		err = a.call(ctx, http.MethodPut, onUser(ofUser, user), rabbitUser{Tags: u.Tags}, nil)
	}
	if err == nil {
		err = a.setMark(ctx, user, is, text)
	}
	if err != nil || is.state == revoked {
		return err
	}
	select {
	case <-time.After(settle):
	case <-ctx.Done():
	}
	return ctx.Err()
}

// grant gives a user the rights of the user with the latest accepted version, and returns
// its tags. If there is none, the user keeps its rights, but for the limit of refuse.
func (a *rabbitAPI) grant(ctx context.Context, user string) (tags []string, err error) {
	marks, err := a.readMarks(ctx, a.Users)
	if err != nil {
		return nil, err
	}
	model := user
	for name, m := range marks {
		if name != user && m.state == accepted && (model == user || versions.Later(m.fence, marks[model].fence)) {
			model = name
		}
	}
	_, has, err := a.rights(ctx, user)
	if err != nil {
		return nil, err
	}
	tags, wanted, err := a.rights(ctx, model)
	if err != nil {
		return nil, err
	}
	if wanted[openMost] == shut {
		delete(wanted, openMost)
	}
	for path := range has {
		if _, stays := wanted[path]; !stays {
			err = errors.Join(err, a.call(ctx, http.MethodDelete, onUser(path, user), nil, nil))
		}
	}
	for path, body := range wanted {
		if has[path] != body {
			err = errors.Join(err, a.call(ctx, http.MethodPut, onUser(path, user), json.RawMessage(body), nil))
		}
	}
	return tags, err
}

// rights returns what a user may do: its tags, and its permissions and limits by their
// paths.
func (a *rabbitAPI) rights(ctx context.Context, user string) (tags []string, bodies map[string]string, err error) {
	var u rabbitUser
	var allowed, topics []map[string]string
	var limits []struct{ Value map[string]int }
	err = a.call(ctx, http.MethodGet, onUser(ofUser, user), nil, &u)
	for path, out := range map[string]any{ofUser + "/permissions": &allowed, ofUser + "/topic-permissions": &topics, ofLimits: &limits} {
		if err == nil {
			err = a.call(ctx, http.MethodGet, onUser(path, user), nil, out)
		}
	}
	bodies = map[string]string{}
	for _, p := range slices.Concat(allowed, topics) {
		path := permissions(p["vhost"])
		if exchange, ok := p["exchange"]; ok {
			path = "topic-" + path + "/" + url.PathEscape(exchange)
		}
		delete(p, "user")
		delete(p, "vhost")
		body, _ := json.Marshal(p)
		bodies[path] = string(body)
	}
	for _, l := range limits {
		for name, n := range l.Value {
			bodies[ofLimits+"/"+url.PathEscape(name)] = fmt.Sprintf(`{"value":%d}`, n)
		}
	}
	return u.Tags, bodies, err
}

func (r *RabbitMQ) verify(ctx context.Context, user string, password []byte) error {
	return logIn(r.logIn).atEach(ctx, r.Addresses, user, password)
}

func (r *RabbitMQ) logIn(ctx context.Context, user string, password []byte, address string) error {
	conn, err := dial(ctx, address, r.CA, r.Plain)
	if err != nil {
		return fmt.Errorf("%s: %w", address, advice.Connection(err, nameCA))
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	if err := amqpLogIn(conn, user, password, r.VHost); err != nil {
		return fmt.Errorf("%s: %w", address, err)
	}
	return nil
}

type rabbitConn struct{ Name, Node, VHost, User string }

func (r *RabbitMQ) sessions(ctx context.Context, user string) (found []string, err error) {
	err = r.asAdmin(ctx, func(a *rabbitAPI) error {
		found, err = a.listConnections(ctx, user)
		return err
	})
	return found, err
}

// runs returns for each node how long it runs. It fails if one does not run, because no list
// has the connections of that node.
func (a *rabbitAPI) runs(ctx context.Context) (map[string]int64, error) {
	var nodes []struct {
		Name    string
		Running bool
		Uptime  int64
	}
	if err := a.call(ctx, http.MethodGet, "nodes?columns=name,running,uptime", nil, &nodes); err != nil {
		return nil, err
	}
	uptimes := map[string]int64{}
	for _, n := range nodes {
		if uptimes[n.Name] = n.Uptime; !n.Running {
			return nil, fmt.Errorf("the node %[1]s does not answer, so its connections are unknown; start it, or remove it: rabbitmqctl forget_cluster_node %[1]s", n.Name)
		}
	}
	return uptimes, nil
}

// listConnections returns the connections of a user. RabbitMQ has two lists. The one of a
// user has a connection at once, but keeps some that have ended, forever. The other one has
// a connection only with the next statistics. The uptime of a node is refreshed as often. A
// connection that is still missing there after three of them has ended.
func (a *rabbitAPI) listConnections(ctx context.Context, user string) (found []string, err error) {
	var at []rabbitConn // the first look
	ages := map[string][]int64{}
	defer func() {
		if err != nil && at != nil && ctx.Err() != nil {
			err = fmt.Errorf("the statistics are too rare to tell whether %d connections of %s have ended; lower management.sample_retention_policies.basic and collect_statistics_interval in rabbitmq.conf: %w", len(at), user, err)
		}
	}()
	for {
		uptimes, err := a.runs(ctx)
		if err != nil {
			return nil, err
		}
		late := true
		for node, age := range uptimes {
			if !slices.Contains(ages[node], age) {
				ages[node] = append(ages[node], age)
			}
			late = late && len(ages[node]) > 3
		}
		var open, counted []rabbitConn
		if err := a.call(ctx, http.MethodGet, onUser(ofOpen, user), nil, &open); err != nil || len(open) == 0 {
			return nil, err
		}
		if err := a.call(ctx, http.MethodGet, "connections?columns=name,node,vhost,user", nil, &counted); err != nil {
			return nil, err
		}
		if at == nil {
			at = open
		}
		sure := slices.ContainsFunc(open, func(c rabbitConn) bool { return slices.Contains(counted, c) })
		for _, c := range open {
			if sure || late && !slices.Contains(at, c) {
				found = append(found, fmt.Sprintf("the connection %q of %s to the virtual host %q of %s", c.Name, user, c.VHost, c.Node))
			}
		}
		if sure || late {
			return found, nil
		}
		select {
		case <-time.After(settle):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (r *RabbitMQ) uses(ctx context.Context, user string) ([]string, error) {
	return r.sessions(ctx, user)
}

func (r *RabbitMQ) endSessions(ctx context.Context, user string) error {
	return r.asAdmin(ctx, func(a *rabbitAPI) error { return a.call(ctx, http.MethodDelete, onUser(ofOpen, user), nil, nil) })
}

// rabbitAPI is the management API, with the login of the administrator.
type rabbitAPI struct {
	*RabbitMQ
	admin  login
	client http.Client
}

// asAdmin calls do with the management API.
func (r *RabbitMQ) asAdmin(ctx context.Context, do func(a *rabbitAPI) error) error {
	config, err := trust(r.CA, "")
	if err != nil {
		return err
	}
	admin, err := adminLogin(ctx, r.Admin)
	if err != nil {
		return err
	}
	defer clear(admin.Password)
	return do(&rabbitAPI{r, admin, http.Client{
		Transport:     &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}, // acts are rare
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}})
}

// call calls the management API. in is sent and out is read as JSON, unless they are nil.
func (a *rabbitAPI) call(ctx context.Context, method, path string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(a.API, "/")+"/api/"+path, bytes.NewReader(body))
	if err != nil || req.URL.Scheme != "https" && !a.Plain {
		return errors.New(`"api" is not a URL with https://; correct it, or set "plain: true" for an API without TLS`)
	}
	req.SetBasicAuth(a.admin.Username, string(a.admin.Password))
	req.Header.Set("Content-Type", "application/json") // user-limits require it
	resp, err := a.client.Do(req)
	if err != nil {
		return advice.Connection(err, nameCA)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 16<<20))
	var said struct{ Reason string }
	switch {
	case err != nil:
	case resp.StatusCode == http.StatusNotFound:
		err = errAbsent
	case resp.StatusCode == http.StatusUnauthorized:
		err = fmt.Errorf(`it refuses the administrator; check the variable in "admin" and the tag: %s`, makeAdministrator(a.admin.Username))
	case resp.StatusCode > 299:
		_ = json.Unmarshal(answer, &said)
		err = fmt.Errorf("%s %s", resp.Status, brief.Input(said.Reason))
	case out != nil:
		err = json.Unmarshal(answer, out)
	}
	if err != nil {
		return fmt.Errorf("the management API: %s %s: %w", method, path, err)
	}
	return nil
}
