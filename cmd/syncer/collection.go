package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"time"
)

// delayCollection lets the heap grow to 8 MB instead of 4 before the first garbage
// collection. A sidecar's start allocates 3 MB. A collection during it takes a sixth of its
// CPU time, and the structures of the collector more memory than it frees. The usual rule
// returns with the first collection, or after a second. An operator's GOGC always applies.
func delayCollection() {
	if os.Getenv("GOGC") != "" {
		return
	}
	usual := debug.SetGCPercent(200)
	restore := sync.OnceFunc(func() { debug.SetGCPercent(usual) })
	time.AfterFunc(time.Second, restore)
	runtime.AddCleanup(new([32]byte), func(restore func()) { restore() }, restore) // called by the first collection
}
