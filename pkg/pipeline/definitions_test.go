package pipeline

import (
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/targets/records"
	"github.com/secretsync/syncer/test/proctest"
)

// A namespace may define thousands of templates in a Secret.
func TestASmallDefinitionDoesNotWaitForALargeOne(t *testing.T) {
	c := newCluster(t, config.ModeStandalone, leftover{}, "")
	c.parsing.Lock() // as a large definition does
	var others sync.WaitGroup
	others.Go(func() { c.has("large", "{}"+strings.Repeat(" ", smallDefinition-1)) })
	small := make(chan struct{})
	go func() {
		defer close(small)
		c.has("small", "{}"+strings.Repeat(" ", smallDefinition-2))
	}()
	select {
	case <-small:
	case <-time.After(proctest.Patience):
		t.Error("it waits")
	}
	if _, parsed := c.set.Get(targets.KubeSecretKey("ns", "large")); parsed {
		t.Error("two large definitions are parsed at the same time")
	}
	c.parsing.Unlock()
	others.Wait()
	<-small
	c.settled()
}

// TestWhatWasSeenBeforeAWriteIsNoNews has a worker take a new Secret while the
// event that brings it is still being handled, and write it before the next one.
func TestWhatWasSeenBeforeAWriteIsNoNews(t *testing.T) {
	c := newCluster(t, config.ModeStandalone, leftover{}, "")
	lane, key := c.set.Lane(""), targets.KubeSecretKey("ns", "new")
	var held records.Record
	begin := zap.Hooks(func(zapcore.Entry) (_ error) {
		if r, ok := lane.Begin(key); ok {
			held = r
		}
		return
	})
	c.log = zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()), zapcore.AddSync(io.Discard), zap.WarnLevel), begin)
	c.has("new", "{a: {id: app/a, unheard: of}}") // which is warned of
	if held.Spec == nil {
		t.Fatal("no worker took it")
	}
	held.Status.Version = "new/2"
	if _, again := lane.Settle(held); len(again) > 0 {
		t.Errorf("what was written is to be synced again: %v", again)
	}
	c.settled()
}
