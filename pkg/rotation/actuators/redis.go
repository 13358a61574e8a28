package actuators

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/secretsync/syncer/internal/advice"
	"github.com/secretsync/syncer/pkg/secret"
)

// Redis is an [Account] of the access control list of Redis 6 or later, or Valkey. Servers
// do not replicate this list, so each is changed. The seal is one more digest of the
// user's passwords, of which nobody knows the password.
type Redis struct {
	Addresses []string // host:port, of all servers
	// Admin returns the administrator's login, {"username":…,"password":…}.
	Admin func(context.Context) (secret.Value, error)

	CA    string // file with the trusted authorities; "": the system's
	Plain bool   // without TLS
}

func (r *Redis) places(context.Context, string) ([]string, error) { return r.Addresses, nil }

func (*Redis) most() int { return 0 }

// aclUser is a user in the access control list.
type aclUser struct {
	exists, on, nopass bool
	digests            []string // of passwords, in hex
}

func (c *resp) user(name string) (u aclUser, err error) {
	answer, err := c.do("ACL", "GETUSER", name)
	fields, _ := answer.([]any)
	for i := 0; i+1 < len(fields); i += 2 {
		u.exists = true
		switch fields[i] {
		case "flags":
			flags := texts(fields[i+1])
			u.on, u.nopass = slices.Contains(flags, "on"), slices.Contains(flags, "nopass")
		case "passwords":
			u.digests = texts(fields[i+1])
		}
	}
	return u, err
}

func texts(list any) (all []string) {
	items, _ := list.([]any)
	for _, item := range items {
		if text, ok := item.(string); ok {
			all = append(all, text)
		}
	}
	return all
}

// cannot returns why the passwords of a user cannot be rotated.
func (u aclUser) cannot(name string) error {
	switch {
	case !u.exists:
		return fmt.Errorf("it does not exist; create it: %s, with the keys and commands that its programs need", creation(name))
	case name == "default":
		return errors.New(`programs and replicas that send no username are the user default, and requirepass removes all passwords of it but one; give the programs another user`)
	case u.nopass:
		return fmt.Errorf("it accepts any password; when all programs send one, run: %s resetpass", setUser(name))
	}
	return nil
}

func (r *Redis) readAccount(ctx context.Context, place, user string, known []secret.Value) (is account, err error) {
	err = r.asAdmin(ctx, []string{place}, func(_ string, c *resp) error {
		u, err := c.user(user)
		if err == nil {
			err = u.cannot(user)
		}
		var own []string
		for _, value := range known {
			digest := ""
			if value.Len() > 0 {
				digest = aclDigest(value)
				own = append(own, digest)
			}
			is.accepts = append(is.accepts, slices.Contains(u.digests, digest))
		}
		seals := 0
		for _, digest := range u.digests {
			if raw, err := hex.DecodeString(digest); err == nil && isSeal(raw) {
				is.owner = seal(raw)
				seals++
			} else if !slices.Contains(own, digest) {
				is.others = append(is.others, digest[:min(8, len(digest))])
			}
		}
		if err == nil && seals > 1 {
			err = fmt.Errorf(`two sets own it; remove it from one set, and each password that begins with %x`, sealed)
		}
		return err
	})
	return is, err
}

func aclDigest(value secret.Value) string {
	digest := sha256.Sum256(value.Bytes())
	return hex.EncodeToString(digest[:])
}

// setPasswords changes the user in one command, which changes nothing if a digest to be removed is
// gone. It then stores the access control list, also if nothing differs: an earlier call
// may not have come so far.
func (r *Redis) setPasswords(ctx context.Context, place, user string, was account, known []secret.Value, wanted []bool, owner seal) error {
	rules := []string{"ACL", "SETUSER", user}
	if was.owner != (seal{}) {
		rules = append(rules, "!"+hex.EncodeToString(was.owner[:]))
	}
	rules = append(rules, "#"+hex.EncodeToString(owner[:]))
	for i, value := range known {
		switch {
		case wanted[i] && !was.accepts[i]:
			rules = append(rules, "#"+aclDigest(value))
		case !wanted[i] && was.accepts[i]:
			rules = append(rules, "!"+aclDigest(value))
		}
	}
	return r.asAdmin(ctx, []string{place}, func(_ string, c *resp) error {
		if _, err := c.do(rules...); err != nil {
			return fmt.Errorf("the access control list was not changed: %w", err)
		}
		if _, err := c.do("ACL", "SAVE"); err != nil && !strings.Contains(err.Error(), noACLFile) {
			return fmt.Errorf("the change is not stored in the ACL file, so a restart would undo it: %w", err)
		}
		return nil
	})
}

// noACLFile is in the error of ACL SAVE of a server that has no such file.
const noACLFile = "not configured to use an ACL file"

func creation(user string) string {
	return setUser(user) + " on ~* &* +@all -@admin -@dangerous"
}

// setUser is the start of a command for redis-cli, which takes a quote in a name for the
// begin of a quoted text.
func setUser(user string) string {
	if strings.ContainsAny(user, `"'\`) {
		user = strconv.Quote(user)
	}
	return "ACL SETUSER " + user
}

// verify logs in at every address.
func (r *Redis) verify(ctx context.Context, user string, password []byte) error {
	return logIn(r.logIn).atEach(ctx, r.Addresses, user, password)
}

func (r *Redis) logIn(ctx context.Context, user string, password []byte, address string) error {
	c, err := r.open(ctx, login{Username: user, Password: password}, address)
	if redisCode(err) == "WRONGPASS" {
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	if err == nil {
		c.close()
	}
	return err
}

// sessionsBefore returns those that began before a time. Redis tells ages in whole seconds,
// so one that began in the second before it may be missing.
func (r *Redis) sessionsBefore(ctx context.Context, user string, before time.Time) (found []string, err error) {
	err = r.asAdmin(ctx, r.Addresses, func(address string, c *resp) error {
		answer, err := c.do("CLIENT", "LIST")
		if err != nil {
			return err
		}
		now, from := time.Now(), map[string]int{}
		text, _ := answer.(string)
		for line := range strings.Lines(text) {
			client := map[string]string{}
			for _, field := range strings.Fields(line) {
				name, value, _ := strings.Cut(field, "=")
				client[name] = value
			}
			age, err := strconv.Atoi(client["age"])
			if client["user"] == user && err == nil && now.Add(-time.Duration(age)*time.Second).Before(before) {
				host, _, _ := net.SplitHostPort(client["addr"])
				from[fmt.Sprintf("of %s at %s from %s (%q)", user, address, host, client["name"])]++
			}
		}
		for who, n := range from {
			found = append(found, fmt.Sprint(n, " ", who))
		}
		return nil
	})
	slices.Sort(found)
	return found, err
}

func (r *Redis) endSessions(ctx context.Context, user string) error {
	return r.asAdmin(ctx, r.Addresses, func(_ string, c *resp) error {
		_, err := c.do("CLIENT", "KILL", "USER", user)
		return err
	})
}

// open logs in at one address.
func (r *Redis) open(ctx context.Context, l login, address string) (c *resp, err error) {
	conn, err := dial(ctx, address, r.CA, r.Plain)
	if err == nil {
		if c, err = logInRESP(ctx, conn, l); r.Plain && err != nil && redisCode(err) == "" {
			err = advice.Add(err, `if the server has TLS, remove "plain: true"`)
		}
	}
	if err != nil {
		if redisCode(err) != "" {
			err = fmt.Errorf("user %s: %w", l.Username, err)
		}
		return nil, fmt.Errorf("%s: %w", address, advice.Connection(advice.Add(err, redisAdvice[redisCode(err)]), nameCA))
	}
	return c, nil
}

// asAdmin calls do with a connection of the administrator to each of some servers.
func (r *Redis) asAdmin(ctx context.Context, addresses []string, do func(address string, c *resp) error) error {
	admin, err := adminLogin(ctx, r.Admin)
	if err != nil {
		return err
	}
	defer clear(admin.Password)
	for _, address := range addresses {
		c, err := r.open(ctx, admin, address)
		if err != nil {
			return err
		}
		err = do(address, c)
		c.close()
		if err != nil {
			return err
		}
	}
	return nil
}
