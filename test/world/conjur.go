// Package world is what tests of whole processes begin with: a Conjur server with
// one host, variables whose values are known, and the folders of a sidecar's Pod.
package world

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/secretsync/syncer/pkg/conjurd/conjurdtest"
	"github.com/secretsync/syncer/test/proctest"
)

// Marker begins each value that Renew sets.
const Marker = "canary-value-"

// Conjur is a server with the host "app", which logs in by API key.
type Conjur struct {
	testing.TB
	Server   *conjurdtest.Server
	Env      map[string]string // of a process that logs in as the host
	Host     string            // to which variables are permitted
	Value    map[string]string // variable → its value
	Canaries []string          // texts that no output may hold
}

// New starts a server, which ends with the test.
func New(t testing.TB, options ...conjurdtest.Option) *Conjur {
	t.Helper()
	c := &Conjur{TB: t, Server: conjurdtest.Start(t, options...), Host: "app", Value: map[string]string{}}
	c.Server.Policy("- !host app\n")
	c.Env = c.Server.Env("app")
	c.Canaries = []string{Marker, c.Server.HostKey("app")}
	return c
}

// Environ is Env as a process takes it, and more.
func (c *Conjur) Environ(more ...string) []string { return proctest.Environ(c.Env, more...) }

// Declare makes variables without a value that the host may read.
func (c *Conjur) Declare(ids ...string) {
	c.Helper()
	for some := range slices.Chunk(ids, 10_000) { // the length of a policy is limited
		var policy strings.Builder
		for _, id := range some {
			fmt.Fprintf(&policy, "- !variable %q\n", id)
		}
		c.Server.Policy(policy.String() + c.privilege("!permit", some))
	}
}

// Variables makes variables that the host may read, each with a value.
func (c *Conjur) Variables(ids ...string) {
	c.Helper()
	c.Declare(ids...)
	c.Renew(ids...)
}

// Permit lets the host read variables.
func (c *Conjur) Permit(ids ...string) {
	c.Helper()
	c.Server.Policy(c.privilege("!permit", ids))
}

// Deny takes that right away.
func (c *Conjur) Deny(ids ...string) {
	c.Helper()
	c.Server.Policy(c.privilege("!deny", ids))
}

func (c *Conjur) privilege(tag string, ids []string) string {
	var policy strings.Builder
	for _, id := range ids {
		fmt.Fprintf(&policy, "- %s { role: !host %q, privileges: [read, execute], resource: !variable %q }\n", tag, c.Host, id)
	}
	return policy.String()
}

// Remove deletes a variable.
func (c *Conjur) Remove(id string) {
	c.Helper()
	c.Server.Policy(fmt.Sprintf("- !delete { record: !variable %q }\n", id))
}

// Renew gives variables new values in one request, and returns the last.
func (c *Conjur) Renew(ids ...string) (last string) {
	c.Helper()
	set := map[string][]byte{}
	for _, id := range ids {
		last = Marker + rand.Text()
		c.Value[id], set[id] = last, []byte(last)
	}
	c.Set(set)
	return last
}

// Set gives variables values in one request.
func (c *Conjur) Set(values map[string][]byte) {
	c.Helper()
	if err := c.Server.Conjurd.SetMany(context.WithoutCancel(c.Context()), values); err != nil {
		c.Fatal(err)
	}
}

// Leak finds a canary in a text.
func (c *Conjur) Leak(text string) string { return Leak(text, c.Canaries...) }

// Spawn starts a program that TestMain has built. When the test ends, its output
// must hold no canary.
func (c *Conjur) Spawn(program string, env []string, args ...string) *proctest.Process {
	c.Helper()
	p := proctest.Spawn(c, program, env, args...)
	c.Cleanup(func() { c.Silent(p) })
	return p
}

// Silent fails the test if the output of a process holds a canary.
func (c *Conjur) Silent(p *proctest.Process) {
	c.Helper()
	if found := c.Leak(p.Log()); found != "" {
		c.Errorf("the output of process %d holds a value: %s", p.PID(), found)
	}
}
