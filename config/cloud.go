package config

import (
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/secretsync/syncer/internal/brief"
	"github.com/secretsync/syncer/internal/loopback"
)

// AWS are the access keys of an IAM user. See setting for the tags.
type AWS struct {
	User string `name:"user" is:"required"`
	// Admin is the variable with the key that signs requests. If empty, Syncer finds its
	// credentials as other AWS programs do.
	Admin  string `name:"admin" follows:"as other AWS programs find them"`
	Region string `name:"region" default:"us-east-1"` // of STS, and of the partition
	// Endpoint replaces the URLs of IAM and STS. If empty, they are those of the region.
	Endpoint    string `name:"endpoint" follows:"that of the region"`
	Credentials bool   `name:"credentials" default:"false"` // adds a credentials file as a part
	// Unused is how long ago the last use of a key must be before it counts as unused.
	Unused time.Duration `name:"unused" kind:"period" least:"1s" default:"1h"`
	// DeleteAfter is how long a key stays inactive before it is deleted.
	DeleteAfter time.Duration `name:"deleteAfter" kind:"period" least:"1s" default:"30m"`
}

// GCP are the keys of a service account of Google Cloud. See setting for the tags.
type GCP struct {
	Account  string `name:"account" is:"required"`                    // the email address
	Project  string `name:"project" follows:"that of the account"`    // id of the account's project
	Admin    string `name:"admin" follows:"the account of the Pod"`   // the variable with Syncer's own key file
	Self     bool   `name:"self" default:"false"`                     // the primary of the set is used instead
	Endpoint string `name:"endpoint" follows:"those of Google Cloud"` // replaces all URLs
	// Unused is how long ago the last use of a key must be before it counts as unused. If it
	// is 0, the Policy Analyzer is not asked.
	Unused time.Duration `name:"unused" kind:"period" least:"1s"`
	// DeleteAfter is how long a key stays inactive before it is deleted.
	DeleteAfter time.Duration `name:"deleteAfter" kind:"period" least:"1s" default:"30m"`
}

// Azure are the client secrets of an application. See setting for the tags.
type Azure struct {
	Application string        `name:"application" is:"required"`                        // the client id
	Tenant      string        `name:"tenant" is:"required"`                             // its id
	Admin       string        `name:"admin" follows:"the identity of the Pod"`          // the variable with Syncer's own credentials
	Self        bool          `name:"self" default:"false"`                             // the primary of the set is used instead
	Validity    time.Duration `name:"validity" kind:"period" least:"1h" default:"365d"` // until Azure ends a secret
	Endpoint    string        `name:"endpoint" follows:"those of Azure"`                // replaces all URLs
}

// cloud returns the name of the set's cloud, and the parts of a version there, with
// those that can be adopted first. It returns no name for sets without a cloud.
func (s RotatedSet) cloud() (name string, adopted, others []string) {
	switch {
	case s.AWS != nil && s.AWS.Credentials:
		return "aws", []string{"accessKeyId", "secretAccessKey"}, []string{"credentials"}
	case s.AWS != nil:
		return "aws", []string{"accessKeyId", "secretAccessKey"}, nil
	case s.GCP != nil:
		return "gcp", []string{"key"}, nil
	case s.Azure != nil:
		return "azure", []string{"clientSecret", "keyId"}, []string{"clientId", "tenantId"}
	}
	return "", nil, nil
}

// issuedOutside reports whether the outside system makes all parts of a version.
func (s RotatedSet) issuedOutside() bool {
	return s.APIKeys != nil || s.AWS != nil || s.GCP != nil || s.Azure != nil
}

// mayCarrySecrets reports whether a text is a URL to which secrets may be sent.
func mayCarrySecrets(text string) bool {
	to, err := url.Parse(text)
	return err == nil && to.Hostname() != "" && !strings.Contains(text, " ") && to.User == nil && (to.Scheme == "https" || to.Scheme == "http" && loopback.Is(to.Hostname()))
}

// checkCloud makes the checks of a cloud's settings that their form does not imply.
func (l *loader) checkCloud(it item) {
	if to := it["endpoint"]; to.set && !mayCarrySecrets(to.text) {
		l.fail(to.key, "this must be a URL with https://, or with http:// and an address of loopback; it must not have a user or password; keys are sent there")
	}
	if it["self"].set && it["self"].text == "true" && it["admin"].set {
		l.fail(it["admin"].key, "the set uses its own primary (self); remove one of the two")
	}
}

// checkCloudSet checks a set of a cloud: the parts that it adopts, and that no secret ends
// before the next one exists.
func (l *loader) checkCloudSet(it item, set RotatedSet) {
	name, adopts, _ := set.cloud()
	if name == "" {
		return
	}
	adopted := it["adopt"]
	if got := slices.Sorted(slices.Values(adopted.keys)); adopted.set && !slices.Equal(got, slices.Sorted(slices.Values(adopts))) {
		l.fail(adopted.key, "a key of %s is adopted as %s; adopt exactly these parts", name, strings.Join(adopts, " and "))
	}
	if self := it[name].object()["self"]; !adopted.set && (set.GCP != nil && set.GCP.Self || set.Azure != nil && set.Azure.Self) {
		l.fail(self.key, "the set has no key to log in with; adopt the present key")
	}
	if set.GCP != nil && !strings.Contains(set.GCP.Account, "@") {
		l.fail(it[name].object()["account"].key, "this must be the email address of the service account")
	}
	if set.GCP != nil && set.GCP.Unused > 0 && set.GCP.Project == "" && !strings.HasSuffix(set.GCP.Account, ".iam.gserviceaccount.com") {
		l.fail(it[name].object()["unused"].key, "the address of this account does not contain its project, which the Policy Analyzer needs; set project")
	}
	if set.Azure != nil && set.Every == 0 && set.Times == nil {
		l.warn(it[name].key, "Azure ends a secret %s after its creation, and the set has no schedule; set every", brief.Duration(set.Azure.Validity))
	}
	if set.Azure != nil && set.Every > 0 && set.Azure.Validity < 2*set.Every {
		l.fail(it[name].key, "Azure ends a secret %s after its creation, and Syncer makes the next one after %s; set validity to at least twice as long", brief.Duration(set.Azure.Validity), brief.Duration(set.Every))
	}
}

// cloudHolder names whose keys the set changes in a cloud; "" for sets without a cloud.
// Names that differ only in upper and lower case are one holder.
func (s RotatedSet) cloudHolder() string {
	switch {
	case s.AWS != nil:
		return strings.TrimSpace("the IAM user " + strings.ToLower(s.AWS.User) + " " + s.AWS.Admin)
	case s.GCP != nil:
		return "the service account " + s.GCP.Account
	case s.Azure != nil:
		return "the application " + strings.ToLower(s.Azure.Application)
	}
	return ""
}
