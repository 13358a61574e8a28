//go:build long

// Package soak lets Syncer run for a long time in a world that never rests:
// values rotate, templates are edited, servers fail, variables come and go,
// and an application deletes what it was given. A process must end up with
// what Conjur has, must never show a reader anything torn, and must not grow.
//
// The schedule is random, from a seed that is printed. The environment sets
//
//	SYNCER_SOAK       how long, such as 1h; two minutes without it
//	SYNCER_SOAK_SEED  the seed of a schedule to follow again
package soak

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/secretsync/syncer/test/gobuild"
	"github.com/secretsync/syncer/test/kubetest"
)

var (
	plane  *kubetest.ControlPlane
	binary string // syncer, as it is shipped
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(gobuild.Main(kubetest.Own(m, &plane), func(dir string) error {
		binary = filepath.Join(dir, "syncer")
		// The race detector's memory grows with use, and would hide growth of the process. So
		// the tests use the released build.
		return gobuild.Build(binary, "", "../../cmd/syncer", "-trimpath", "-ldflags=-s -w")
	}))
}

// length is how long the soak takes.
func length(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("SYNCER_SOAK")
	if text == "" {
		return 2 * time.Minute
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("SYNCER_SOAK: %v", err)
	}
	return d
}

// seeded is the source of a schedule.
func seeded(t *testing.T) *rand.Rand {
	t.Helper()
	seed := rand.Uint64()
	if text := os.Getenv("SYNCER_SOAK_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("SYNCER_SOAK_SEED: %v", err)
		}
	}
	t.Logf("SYNCER_SOAK_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}
