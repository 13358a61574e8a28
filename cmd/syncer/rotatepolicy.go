package main

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/rotation/versions"
)

// printPolicy prints the policy that the sets of a file need. The rights in servers and
// clouds go to remarks, so that the output is only a policy.
func printPolicy(file string, out, remarks io.Writer) error {
	if file == "" {
		return errNoSet
	}
	c, _, err := config.LoadRotation(config.Sources{ConfigFile: config.ReadFile(file), Getenv: os.Getenv, Assume: config.Assumptions{Connection: true, Files: true}})
	if err == nil {
		_, err = io.WriteString(out, policyOf(c))
	}
	if err == nil {
		_, err = io.WriteString(remarks, outsideRights(c))
	}
	return err
}

// policyOf returns the policy for the root. It declares the variables of sets and grants
// the rotating host its permissions.
func policyOf(c config.Rotation) string {
	changed, read, steered, hosts := map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}
	setOf := map[string]string{} // by host
	for _, set := range c.Sets {
		changed[set.Set], changed[versions.ControlOf(set.Set)], steered[versions.ControlOf(set.Set)] = true, true, true
		for id := range set.Publish {
			changed[id] = true
		}
		for _, id := range set.Adopt {
			read[id] = true
		}
		for _, id := range needs(set) {
			read[id] = true
		}
		if set.APIKeys != nil {
			for _, host := range set.APIKeys.Hosts {
				hosts[host], setOf[host] = true, set.Set
			}
		}
	}
	maps.DeleteFunc(read, func(id string, _ bool) bool { return changed[id] })
	var text strings.Builder
	text.WriteString("# Load this into root. Objects that exist stay unchanged.\n")
	who := "!user " + c.Conjur.Login
	if host, ok := strings.CutPrefix(c.Conjur.Login, "host/"); ok {
		who = "!host " + host
		fmt.Fprintf(&text, "- %s\n", who)
	} else if c.Conjur.Login == "" {
		who = "!host ROTATES"
		text.WriteString("# Replace ROTATES by the id of the host that rotates.\n")
	}
	for _, ids := range []map[string]bool{changed, read} {
		for _, id := range slices.Sorted(maps.Keys(ids)) {
			fmt.Fprintf(&text, "- !variable %s\n", id)
		}
	}
	for _, host := range slices.Sorted(maps.Keys(hosts)) {
		fmt.Fprintf(&text, "- !host { id: %s, annotations: { %s: %s } }\n", host, conjur.SetAnnotation, setOf[host])
	}
	permit := func(role, privileges, kind string, ids map[string]bool) {
		if len(ids) > 0 {
			list := strings.Join(slices.Sorted(maps.Keys(ids)), ", "+kind+" ")
			fmt.Fprintf(&text, "- !permit { role: %s, privileges: [%s], resources: [%s %s] }\n", role, privileges, kind, list)
		}
	}
	permit(who, "read, execute, update", "!variable", changed)
	permit(who, "read, execute", "!variable", read)
	permit(who, "update", "!host", hosts)
	text.WriteString("# Members of this group may steer the sets.\n- !group rotation-steers\n")
	permit("!group rotation-steers", "read, execute, update", "!variable", steered)
	return text.String()
}

// needs returns the variables that are needed to create the versions of a set and to make
// them accepted.
func needs(set config.RotatedSet) (ids []string) {
	if set.Generate.X509 != nil {
		ids = append(ids, set.Generate.X509.CA)
	}
	if _, server := set.Server(); server != nil {
		ids = append(ids, server.Admin)
	}
	switch {
	case set.HTTP != nil:
		ids = append(ids, set.HTTP.Key)
	case set.Exec != nil:
		ids = append(ids, set.Exec.Key)
	case set.AWS != nil:
		ids = append(ids, set.AWS.Admin)
	case set.GCP != nil:
		ids = append(ids, set.GCP.Admin)
	case set.Azure != nil:
		ids = append(ids, set.Azure.Admin)
	}
	return slices.DeleteFunc(ids, func(id string) bool { return id == "" })
}
