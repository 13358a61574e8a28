package clouds

import (
	"strings"
	"testing"
	"time"

	"github.com/secretsync/syncer/pkg/rotation"
	"github.com/secretsync/syncer/pkg/rotation/actuators/cloud"
	"github.com/secretsync/syncer/pkg/rotation/versions"
	"github.com/secretsync/syncer/test/proctest"
)

// TestAdoptionOfAnotherKey: a key of another holder, or the id of another key, is not
// adopted, and never ended.
func TestAdoptionOfAnotherKey(t *testing.T) {
	type adoption struct {
		*Cloud
		keys  func(cloud.Config) *cloud.Keys
		parts map[string]string
		want  string
	}
	for name, of := range map[string]func(t *testing.T) adoption{
		"a key file of another account": func(t *testing.T) adoption {
			g, other := NewGCP(t, shop, nil), NewGCP(t, "other@acme.iam.gserviceaccount.com", nil)
			return adoption{&g.Cloud, g.keys, map[string]string{"key": string(other.File(other.New()))},
				"belongs to the service account other@acme.iam.gserviceaccount.com instead of the service account " + shop}
		},
		"the id of another secret": func(t *testing.T) adoption {
			a := NewAzure(t, nil)
			own, other := a.Add("own", time.Now()), a.Add("other", time.Now())
			return adoption{&a.Cloud, a.keys, map[string]string{"clientSecret": own.Secret, "keyId": other.ID},
				"the secret with the id other has another beginning"}
		},
		"an id that does not exist": func(t *testing.T) adoption {
			a := NewAzure(t, nil)
			own := a.Add("own", time.Now())
			return adoption{&a.Cloud, a.keys, map[string]string{"clientSecret": own.Secret, "keyId": "none"}, "has no key none"}
		},
		"a value with a newline": func(t *testing.T) adoption {
			a := NewAWS(t, "shop", nil)
			own := a.Add("AKIAOLD", time.Now())
			return adoption{&a.Cloud, a.keys, map[string]string{"accessKeyId": own.ID + "\n", "secretAccessKey": own.Secret},
				"accessKeyId begins or ends with white space"}
		},
		"another secret": func(t *testing.T) adoption {
			a := NewAWS(t, "shop", nil)
			own := a.Add("AKIAOLD", time.Now())
			return adoption{&a.Cloud, a.keys, map[string]string{"accessKeyId": own.ID, "secretAccessKey": "another"}, "does not accept the access key AKIAOLD"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, a := newSite(t), of(t)
			config := brisk(s.reader)
			config.Adopts = true
			h, variables := &heard{}, map[string]string{}
			for part, text := range a.parts {
				id := "cloud/old-secret"
				if strings.HasSuffix(part, "Id") {
					id = "cloud/old-id"
				}
				s.Set(id, text)
				variables[part] = id
			}
			stop := run(t, s.engine(s.reader, a.keys(config), nil, h, func(r *rotation.Plan) { r.Adopt = variables }))
			proctest.Eventually(t, "the reason is said", func() bool { return strings.Contains(h.all(), a.want) })
			s.Until("the version is over", func(d *versions.Document) bool { return d.Stage() == "idle" })
			time.Sleep(2 * lag) // longer than DeleteAfter
			stop()
			if ended := a.Ended(); len(ended) > 0 {
				t.Errorf("deleted %q", ended)
			}
			for _, k := range a.Keys() {
				if !k.Active {
					t.Errorf("deactivated %s", k.ID)
				}
			}
		})
	}
}
