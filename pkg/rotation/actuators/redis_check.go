package actuators

import (
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"

	"github.com/secretsync/syncer/internal/lazyregexp"
)

// redisRights are what the administrator runs, each with its right.
func redisRights(user string, endSessions bool) map[string][]string {
	rights := map[string][]string{
		"+acl|getuser": {"ACL", "GETUSER", user}, "+acl|setuser": {"ACL", "SETUSER", user}, "+acl|save": {"ACL", "SAVE"},
		"+client|list": {"CLIENT", "LIST"}, "+config|get": {"CONFIG", "GET", "aclfile"}, "+info": {"INFO"}, "+cluster|nodes": {"CLUSTER", "NODES"},
	}
	if endSessions {
		rights["+client|kill"] = []string{"CLIENT", "KILL", "USER", user}
	}
	return rights
}

func (*Redis) statements(users []string, endSessions bool) []string {
	rights := slices.Sorted(maps.Keys(redisRights("", endSessions)))
	all := []string{"ACL SETUSER syncer on >… +multi +discard " + strings.Join(rights, " ")}
	for _, user := range users {
		all = append(all, creation(user))
	}
	return append(all, "ACL SAVE")
}

// redisNode is a server.
type redisNode struct {
	address string
	info    map[string]string
	cluster []string // the lines of CLUSTER NODES
}

// findObstacles finds missing rights and users, and servers that accept a wrong password or forget
// passwords in a restart. If there are none, it finds servers that are not among the
// addresses.
func (r *Redis) findObstacles(ctx context.Context, users []string, endSessions bool) (problems []error) {
	nodes := map[string]redisNode{} // by their run
	for _, address := range r.Addresses {
		found := logIn(r.logIn).guess(ctx, []string{address}, users, "if its users have nopass, run: "+setUser(users[0])+" resetpass")
		problems = append(problems, found...)
		if slices.ContainsFunc(found, unreachable) {
			continue
		}
		err := r.asAdmin(ctx, []string{address}, func(_ string, c *resp) error {
			wrong, node, err := c.inspectServer(users[0], endSessions)
			for _, problem := range wrong {
				problems = append(problems, fmt.Errorf("%s: %w", address, problem))
			}
			if node.address = address; err == nil {
				nodes[node.info["run_id"]] = node
			}
			return err
		})
		if err != nil {
			problems = append(problems, err)
		}
	}
	if len(problems) > 0 {
		return problems
	}
	return notListed(slices.Collect(maps.Values(nodes)))
}

// inspectServer examines one server.
func (c *resp) inspectServer(user string, endSessions bool) (problems []error, node redisNode, err error) {
	wrong := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	if missing := c.missing(redisRights(user, endSessions)); len(missing) > 0 {
		wrong("%s lacks rights: %s %s", c.username, setUser(c.username), strings.Join(missing, " "))
		return problems, node, nil
	}
	u, err := c.user(user)
	if err != nil {
		return problems, node, err
	}
	if err := u.cannot(user); err != nil {
		wrong("user %s: %w", user, err)
	} else if !u.on {
		wrong("user %s is off: %s on", user, setUser(user))
	}
	answer, err := c.do("CONFIG", "GET", "aclfile")
	if err == nil && slices.Equal(texts(answer), []string{"aclfile", ""}) {
		wrong("a restart forgets new passwords, because no ACL file is configured; set aclfile in its configuration, and move the users there")
	}
	if err == nil {
		answer, err = c.do("INFO")
	}
	text, _ := answer.(string)
	node.info = map[string]string{}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		node.info[name] = value
	}
	if err == nil && node.info["cluster_enabled"] == "1" {
		answer, err = c.do("CLUSTER", "NODES")
		text, _ = answer.(string)
		node.cluster = slices.Collect(strings.Lines(text))
	}
	return problems, node, err
}

// missing returns the rights that the administrator does not have. Redis checks a right
// when it queues a command in a transaction. The transaction is discarded.
func (c *resp) missing(rights map[string][]string) (names []string) {
	refused := func(command ...string) bool {
		_, err := c.do(command...)
		return redisCode(err) == "NOPERM"
	}
	if refused("MULTI") {
		return append([]string{"+multi", "+discard"}, slices.Sorted(maps.Keys(rights))...)
	}
	for _, name := range slices.Sorted(maps.Keys(rights)) {
		if refused(rights[name]...) {
			names = append(names, name)
		}
	}
	if refused("DISCARD") {
		names = append(names, "+discard")
	}
	return names
}

// replicaForm is the value of a line such as "slave0:ip=10.0.0.7,port=6379,state=online".
var replicaForm = lazyregexp.New(`^ip=(.*),port=([0-9]+),state=`)

// notListed names the servers of the same data that are not among the addresses. It
// compares counts and ids, because a server may know others by different addresses.
func notListed(nodes []redisNode) (problems []error) {
	const add = "add each to address, because access control lists are not replicated"
	masters, replicas, attached := map[string]int{}, map[string]int{}, map[string][]string{} // by the replication's id
	listed, clustered := map[string]bool{}, map[string]string{}
	for _, node := range nodes {
		of := node.info["master_replid"]
		if node.info["role"] == "master" {
			masters[of]++
		} else {
			replicas[of]++
		}
		for _, value := range node.info {
			if at := replicaForm().FindStringSubmatch(value); at != nil {
				attached[of] = append(attached[of], net.JoinHostPort(at[1], at[2]))
			}
		}
		for _, line := range node.cluster {
			fields := append(strings.Fields(line), "", "", "") // id, address, flags
			if !strings.Contains(fields[2], "noaddr") && !strings.Contains(fields[2], "handshake") {
				clustered[fields[0]] = fields[1]
				listed[fields[0]] = listed[fields[0]] || strings.Contains(fields[2], "myself")
			}
		}
	}
	for _, node := range nodes {
		if masters[node.info["master_replid"]] == 0 {
			problems = append(problems, fmt.Errorf("%s is a replica of %s; %s", node.address, net.JoinHostPort(node.info["master_host"], node.info["master_port"]), add))
		}
	}
	for of, addresses := range attached {
		if slices.Sort(addresses); len(addresses) > replicas[of] {
			problems = append(problems, fmt.Errorf("there are the replicas %s, but %d of them in address; %s", strings.Join(addresses, ", "), replicas[of], add))
		}
	}
	for id, address := range clustered {
		if !listed[id] {
			problems = append(problems, fmt.Errorf("the cluster also has %s; %s", address, add))
		}
	}
	return problems
}
