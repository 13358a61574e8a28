package pipeline

import (
	"io"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/targets/records"
)

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
