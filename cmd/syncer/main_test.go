package main

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
)

func TestTheUsualRuleReturnsWithTheFirstCollection(t *testing.T) {
	const usual = 99
	usualBefore := debug.SetGCPercent(usual)
	t.Cleanup(func() { debug.SetGCPercent(usualBefore) })
	percent := func() uint64 {
		sample := []metrics.Sample{{Name: "/gc/gogc:percent"}}
		metrics.Read(sample)
		return sample[0].Value.Uint64()
	}
	t.Setenv("GOGC", "50")
	if delayCollection(); percent() != usual {
		t.Errorf("the percentage is %d although the operator chose one", percent())
	}
	t.Setenv("GOGC", "")
	delayCollection()
	runtime.GC()
	eventually(t, "the usual rule", func() bool { return percent() == usual })
}
