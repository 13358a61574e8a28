package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/secretsync/syncer/pkg/rotation/versions"
)

// holders contains the name of the owner of each variable and each login.
type holders map[string]string

// checkSeparate checks that sets share nothing: each variable and each login belongs to one set.
func (l *loader) checkSeparate(items []item, sets []RotatedSet) {
	variables, logins := holders{}, holders{}
	for i, set := range sets {
		if set.Set == "" {
			continue
		}
		key := items[i]["set"].key
		if of := variables[set.Set]; of == "the set "+set.Set {
			l.fail(key, "the set %q is listed twice", set.Set)
		}
		for _, own := range [][2]string{{set.Set, "the set " + set.Set}, {versions.ControlOf(set.Set), "the control variable of the set " + set.Set}} {
			if of := variables[own[0]]; of != "" && of != own[1] {
				l.fail(key, "%q is both %s and %s; name another variable", own[0], of, own[1])
			}
			variables[own[0]] = own[1]
		}
		for login, at := range set.logins(items[i]) {
			if of := logins[login]; of != "" && of != set.Set {
				l.fail(at, "%s is in the set %s too; two sets cannot change one login", login, of)
			}
			logins[login] = set.Set
		}
	}
	for i, set := range sets {
		for _, id := range slices.Sorted(maps.Keys(set.Publish)) {
			key := fmt.Sprintf("%s.%s", items[i]["publish"].key, id)
			if of := variables[id]; of != "" {
				l.fail(key, "%q is %s; publish to another variable", id, of)
				continue
			}
			variables[id] = "published by the set " + set.Set
		}
	}
	for i, set := range sets {
		for part, id := range set.Adopt {
			if of := variables[id]; of != "" && of != "published by the set "+set.Set {
				l.fail(fmt.Sprintf("%s.%s", items[i]["adopt"].key, part), "%q is %s; adopt another variable", id, of)
			}
		}
		l.authority(items[i], set, sets, variables)
	}
}

// authority checks the set that signs the certificates of another set. If it is listed,
// it must be a set of authorities.
func (l *loader) authority(it item, set RotatedSet, sets []RotatedSet, variables holders) {
	if set.Generate.X509 == nil || set.Generate.X509.CA == "" {
		return
	}
	ca, key := set.Generate.X509.CA, it["generate"].object()["x509"].object()["ca"].key
	i := slices.IndexFunc(sets, func(s RotatedSet) bool { return s.Set == ca })
	switch {
	case ca == set.Set:
		l.fail(key, "the set cannot sign itself by its id; leave ca out for a certificate that signs itself")
	case i >= 0 && (sets[i].Generate.X509 == nil || !sets[i].Generate.X509.Authority):
		l.fail(key, "the set %q generates no authority; name a set with generate: {x509: {authority: true}}", ca)
	case i < 0 && variables[ca] != "":
		l.fail(key, "%q is %s; name the set of an authority", ca, variables[ca])
	}
}

// logins returns the logins that the set changes outside, each with the key of the
// setting that names it. Users belong to a server, regardless of the database.
func (s RotatedSet) logins(it item) map[string]string {
	logins := map[string]string{}
	if p := s.PostgreSQL; p != nil {
		for _, address := range p.Address {
			server := address[:max(strings.LastIndex(address, "/"), 0)]
			for _, user := range p.Users {
				logins[fmt.Sprintf("the user %s of %s", user, server)] = it["postgresql"].object()["users"].key
			}
		}
	}
	if s.APIKeys != nil {
		for _, host := range s.APIKeys.Hosts {
			logins["the host "+host] = it["conjur"].object()["hosts"].key
		}
	}
	if name, _, _ := s.clouds(); name != "" {
		logins[s.cloudHolder()] = it[name].key
	}
	return logins
}
