package conformance_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/secretsync/syncer/pkg/conjurd"
	"github.com/secretsync/syncer/pkg/conjurd/cloudtest"
	"github.com/secretsync/syncer/pkg/conjurd/conformance"
	"github.com/secretsync/syncer/pkg/conjurd/conjurdtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestServer runs the suite against the server that the environment names, or
// else against conjurd in its strict form.
func TestServer(t *testing.T) {
	target, given, err := conformance.FromEnv()
	if err != nil {
		t.Fatal(err)
	}
	if !given {
		w := &conformance.Workloads{AWS: cloudtest.NewAWS(t, time.Now), Azure: cloudtest.NewAzure(t, time.Now), GCP: cloudtest.NewGCP(t, time.Now)}
		p := &pods{}
		w.Injected = func() []byte { return *p.script.Load() }
		s := conjurdtest.Start(t, conjurdtest.Strict(), conjurdtest.With(func(o *conjurd.Options) {
			o.STS, o.GoogleIssuer, o.Kubernetes = w.AWS.STS.URL, w.GCP.URL, p
		}))
		target = conformance.Target{URL: s.URL, CA: s.CA, Account: s.Account, Login: "admin", APIKey: s.AdminKey, Ours: true, JWT: true, Workloads: w}
	}
	conformance.Run(t, target)
}

// pods is a cluster with one Pod.
type pods struct{ script atomic.Pointer[[]byte] } // that came last

func (*pods) Pod(_ context.Context, namespace, name string) (*conjurd.Pod, error) {
	if namespace != conformance.PodName || name != conformance.PodName {
		return nil, nil
	}
	return &conjurd.Pod{ServiceAccount: conformance.PodName, Containers: []string{"authenticator"}}, nil
}

func (p *pods) Exec(_ context.Context, _, _, _ string, script []byte) error {
	p.script.Store(&script)
	return nil
}
