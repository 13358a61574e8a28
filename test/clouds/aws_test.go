package clouds

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/secretsync/syncer/pkg/rotation"
	"github.com/secretsync/syncer/pkg/rotation/actuators/cloud"
	"github.com/secretsync/syncer/pkg/rotation/versions"
	"github.com/secretsync/syncer/pkg/secret"
	"github.com/secretsync/syncer/test/proctest"
)

// begun returns a user with one recorded key.
func begun(t *testing.T) (*site, *AWS, *cloud.Keys, *heard, versions.Version) {
	t.Helper()
	s, a := newSite(t), NewAWS(t, "shop", nil)
	a.Lag = lag
	keys, h := a.keys(brisk(s.reader)), &heard{}
	run(t, s.engine(s.reader, keys, nil, h))
	return s, a, keys, h, s.Idle("")
}

// TestAccessKeysRotate with their parts, one after the other.
func TestAccessKeysRotate(t *testing.T) {
	s, a, _, h, first := begun(t)
	if names := first.PartNames(); !slices.Equal(names, []string{"accessKeyId", "credentials", "secretAccessKey"}) {
		t.Errorf("the parts are %q", names)
	}
	key := a.Keys()[0]
	if want := fmt.Sprintf("[default]\naws_access_key_id = %s\naws_secret_access_key = %s\n", key.ID, key.Secret); string(first.Parts["credentials"].Bytes()) != want {
		t.Errorf("the credentials file is not that of the key %s", key.ID)
	}
	if err := s.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	second := s.Idle(first.ID)
	if keys := a.Keys(); len(keys) != 1 || keys[0].ID != string(second.Parts["accessKeyId"].Bytes()) || keys[0].Secret != string(second.Parts["secretAccessKey"].Bytes()) {
		t.Errorf("the user has %d keys", len(keys))
	}
	if all := h.all(); strings.Contains(all, key.Secret) || strings.Contains(all, string(second.Parts["secretAccessKey"].Bytes())) || strings.Contains(all, a.Admin.Secret) {
		t.Error("an Event or the log contains a secret")
	}
}

// TestAKeyThatIsStillUsedStays active, and the reason names it.
func TestAKeyThatIsStillUsedStays(t *testing.T) {
	for _, name := range []string{"aws", "gcp"} {
		t.Run(name, func(t *testing.T) {
			s, d := newSite(t), doubles[name](t, nil)
			config := brisk(s.reader)
			config.Unused = time.Hour
			h := &heard{}
			run(t, s.engine(s.reader, d.keys(config), nil, h))
			first := s.Idle("") // Syncer itself has used it
			old := d.Keys()[0].ID
			if err := s.Begin(t.Context()); err != nil {
				t.Fatal(err)
			}
			proctest.Eventually(t, "the old key is named", func() bool { return strings.Contains(h.all(), "is used by the key "+old) })
			if err := s.Steered.SendCommand(t.Context(), versions.Command{Verb: "retire", Version: first.ID, Reason: "it leaked", At: time.Now()}); err != nil {
				t.Fatal(err)
			}
			s.Idle(first.ID)
			if !slices.Equal(d.Ended(), []string{old}) {
				t.Errorf("deleted %q", d.Ended())
			}
		})
	}
}

// TestAUsedKeyThatItsOwnerDeletes no longer delays anything. AWS refuses to say when it
// was used.
func TestAUsedKeyThatItsOwnerDeletes(t *testing.T) {
	s, a := newSite(t), NewAWS(t, "shop", nil)
	config := brisk(s.reader)
	config.Unused = time.Hour
	h := &heard{}
	run(t, s.engine(s.reader, a.keys(config), nil, h))
	first := s.Idle("")
	old := string(first.Parts["accessKeyId"].Bytes())
	if err := s.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	proctest.Eventually(t, "the old key is named", func() bool { return strings.Contains(h.all(), "is used by the key "+old) })
	a.Remove(old)
	s.Idle(first.ID)
}

// TestAKeyThatTheSetDoesNotKnow is named, and neither changed nor deleted, whenever it
// was made.
func TestAKeyThatTheSetDoesNotKnow(t *testing.T) {
	s, a := newSite(t), NewAWS(t, "shop", nil)
	a.Add("AKIABYHAND", time.Now().Add(-time.Hour))
	h := &heard{}
	keys := a.keys(brisk(s.reader))
	engine := s.engine(s.reader, keys, nil, h)
	run(t, engine)
	first := s.Idle("")
	if err := s.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	proctest.Eventually(t, "the unknown key is named", func() bool {
		return strings.Contains(h.all(), "the IAM user shop can have 2 keys, and a rotation needs two of them; the set does not know AKIABYHAND")
	})
	doc, err := s.Look(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	check := a.keys(brisk(s.reader)) // as "rotate check" is another process
	if problems := check.Check(t.Context(), doc); len(problems) != 1 || !strings.Contains(problems[0].Error(), "AKIABYHAND") {
		t.Errorf("check says %v", problems)
	}
	if len(a.Ended()) > 0 || !a.Keys()[0].Active {
		t.Error("the unknown key was changed")
	}
	a.Remove("AKIABYHAND") // its owner does
	s.Idle(first.ID)
}

// TestAdoptedKeys become the first version and are replaced like others.
func TestAdoptedKeys(t *testing.T) {
	s, a := newSite(t), NewAWS(t, "shop", nil)
	old := a.Add("AKIAOLD", time.Now().Add(-time.Hour))
	s.Set("cloud/old-id", old.ID)
	s.Set("cloud/old-secret", old.Secret)
	config := brisk(s.reader)
	config.Adopts = true
	run(t, s.engine(s.reader, a.keys(config), nil, nil, func(r *rotation.Plan) {
		r.Adopt = map[string]string{"accessKeyId": "cloud/old-id", "secretAccessKey": "cloud/old-secret"}
	}))
	first := s.Idle("")
	if names := first.PartNames(); string(first.Parts["accessKeyId"].Bytes()) != old.ID || !slices.Equal(names, []string{"accessKeyId", "credentials", "secretAccessKey"}) {
		t.Errorf("the first version has %q", names)
	}
	if err := s.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.Idle(first.ID)
	if !slices.Equal(a.Ended(), []string{old.ID}) {
		t.Errorf("deleted %q", a.Ended())
	}
}

// TestAKeyIsInactiveBeforeItIsDeleted, and stays if somebody activates it again.
func TestAKeyIsInactiveBeforeItIsDeleted(t *testing.T) {
	s, a := newSite(t), NewAWS(t, "shop", nil)
	config := brisk(s.reader)
	config.DeleteAfter, config.Consistent = time.Hour, 10*time.Millisecond
	h := &heard{}
	run(t, s.engine(s.reader, a.keys(config), nil, h))
	first := s.Idle("")
	old := string(first.Parts["accessKeyId"].Bytes())
	if err := s.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	proctest.Eventually(t, "the wait is named", func() bool {
		return strings.Contains(h.all(), "the key "+old+" is inactive, and is deleted 1h0m0s after that")
	})
	if keys := a.Keys(); len(keys) != 2 || keys[0].Active || !keys[1].Active {
		t.Errorf("the keys are %+v", keys)
	}
	a.Change(old, true)
	proctest.Eventually(t, "the activation is named", func() bool { return strings.Contains(h.all(), "somebody activated the key "+old+" again") })
	if keys := a.Keys(); len(keys) != 2 || !keys[0].Active {
		t.Errorf("the keys are %+v", keys)
	}
}

// TestAKeyThatNobodyRecorded: an engine died after a key was created. A key by hand of
// the same time stays if it was used.
func TestAKeyThatNobodyRecorded(t *testing.T) {
	s, a := newSite(t), NewAWS(t, "shop", nil)
	ctx, kill := context.WithCancel(t.Context())
	config := brisk(s.reader)
	engine := s.engine(s.reader, killed{a.keys(config), kill}, nil, nil)
	engine.Run(ctx)
	lost := a.Keys()[0]
	human := a.Add("AKIAHUMAN", time.Now())
	if err := a.SignIn(human.ID, human.Secret); err != nil {
		t.Fatal(err)
	}
	h := &heard{}
	run(t, s.engine(s.reader, a.keys(config), nil, h))
	first := s.Idle("")
	if !strings.Contains(h.all(), "the key "+lost.ID+" (created for "+first.ID+" and never recorded) is inactive") {
		t.Errorf("the lost key is not named: %s", h.all())
	}
	if !slices.Equal(a.Ended(), []string{lost.ID}) {
		t.Errorf("deleted %q instead of %q", a.Ended(), lost.ID)
	}
	if keys := a.Keys(); len(keys) != 2 || !keys[0].Active || keys[0].ID != human.ID || keys[1].ID != string(first.Parts["accessKeyId"].Bytes()) {
		t.Errorf("the keys are %+v", keys)
	}
}

// killed is an actuator whose process dies when a key was created.
type killed struct {
	*cloud.Keys
	kill func()
}

func (k killed) Apply(ctx context.Context, v versions.Version) (map[string]secret.Value, error) {
	parts, err := k.Keys.Apply(ctx, v)
	if len(parts) > 0 {
		k.kill()
		return nil, context.Canceled
	}
	return parts, err
}

// TestAWrongClock of this machine does not prevent a rotation.
func TestAWrongClock(t *testing.T) {
	s, a := newSite(t), NewAWS(t, "shop", nil)
	a.Ahead = 26 * time.Minute
	run(t, s.engine(s.reader, a.keys(brisk(s.reader)), nil, nil))
	s.Idle("")
}

// TestOwnCredentialsThatExpire are found again.
func TestOwnCredentialsThatExpire(t *testing.T) {
	s, a := newSite(t), NewAWS(t, "shop", nil)
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": a.Admin.ID, "AWS_SECRET_ACCESS_KEY": a.Admin.Secret, "AWS_SESSION_TOKEN": "one", "AWS_CONFIG_FILE": "/dev/null",
		"AWS_SHARED_CREDENTIALS_FILE": "/dev/null", "AWS_EC2_METADATA_DISABLED": "true", "AWS_PROFILE": "", "AWS_WEB_IDENTITY_TOKEN_FILE": "",
	} {
		t.Setenv(name, value)
	}
	keys := cloud.NewAWS(brisk(s.reader), cloud.AWS{User: "shop", Endpoint: a.URL, Client: client})
	if _, err := keys.Prepare(t.Context(), versions.New("us")); err != nil {
		t.Fatal(err)
	}
	renewed := "two"
	a.Session.Store(&renewed)
	t.Setenv("AWS_SESSION_TOKEN", renewed)
	if _, err := keys.Prepare(t.Context(), versions.New("us")); err != nil {
		t.Error(err)
	}
}
