package config_test

import (
	"strings"
	"testing"
	"time"

	"github.com/secretsync/syncer/config"
)

// TestSetsOfClouds: a set of a cloud has no generated parts, and adopts whole keys.
func TestSetsOfClouds(t *testing.T) {
	r, wrong := loadRotation(t, `aws: {user: shop, credentials: true}, publish: {shop/id: accessKeyId, shop/file: credentials}`)
	if len(wrong) > 0 || r.Sets[0].AWS.DeleteAfter != 30*time.Minute || r.Sets[0].AWS.Unused != time.Hour || !r.Sets[0].Outside() || r.Sets[0].Generate.Password != nil {
		t.Errorf("%+v: %v", r.Sets, wrong)
	}
	for set, says := range map[string]string{
		`aws: {user: shop}, generate: {random: 32}`:                            "the cloud creates the keys",
		`aws: {user: shop}, publish: {shop/file: credentials}`:                 "credentials",
		`aws: {user: shop, endpoint: "http://iam/"}`:                           "a URL with https://",
		`aws: {user: shop}, adopt: {accessKeyId: old/id}`:                      "adopted as accessKeyId and secretAccessKey",
		`aws: {user: shop}, gcp: {account: shop@acme.iam.gserviceaccount.com}`: "the set has aws too",
		`aws: {}`: "user is missing",
		`gcp: {account: a@acme.iam.gserviceaccount.com, self: true}`:               "no key to log in with",
		`gcp: {account: a@b, self: true, admin: old/admin}, adopt: {key: old/key}`: "uses its own primary",
		`gcp: {account: shop}`: "the email address",
		`gcp: {account: acme@appspot.gserviceaccount.com, unused: 3d}`:                                "set project",
		`azure: {application: app, tenant: acme, self: true}, every: 30d`:                             "no key to log in with",
		`azure: {application: app, tenant: acme, validity: 59d}, every: 30d`:                          "set validity to at least twice as long",
		`azure: {application: app, tenant: acme}, every: 30d, adopt: {clientSecret: old/secret}`:      "adopted as clientSecret and keyId",
		`azure: {application: app, tenant: acme}, every: 30d, publish: {shop/secret: {parts: [key]}}`: "key",
	} {
		if _, wrong := loadRotation(t, set); len(wrong) != 1 || !strings.Contains(wrong[0].Error(), says) {
			t.Errorf("%s: %q; it should say %q", set, wrong, says)
		}
	}
	src := fileSources(t, `{containerMode: standalone, rotation: {sets: [{set: one, aws: {user: shop}}, {set: two, aws: {user: Shop}}]}}`, nil, connection)
	var said []string
	for _, problem := range problems(t, src) {
		said = append(said, problem.Error())
	}
	if all := strings.Join(said, "\n"); !strings.Contains(all, "the IAM user shop is in the set one too") {
		t.Errorf("two sets of one user: %s", all)
	}
	src = fileSources(t, `{containerMode: standalone, rotation: {sets: [{set: one, azure: {application: app, tenant: acme}}]}}`, nil, connection)
	if _, warnings, err := config.LoadRotation(src.Read()); err != nil || len(warnings) != 1 || !strings.Contains(warnings[0].Error(), "the set has no schedule; set every") {
		t.Errorf("a secret that ends before another exists: %v %v", warnings, err)
	}
}
