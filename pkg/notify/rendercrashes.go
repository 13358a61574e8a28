package notify

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/secretsync/syncer/pkg/targets"
)

// RenderCrashes records in the status folder which targets are being rendered. If the
// process dies during a rendering, the mark stays, and the next process renders that
// target after all others. A mark is an empty file. Its name contains a hash of the key
// and the number of processes that died. A nil RenderCrashes records nothing.
type RenderCrashes struct {
	folder folder

	mu   sync.Mutex
	left map[string]int // marks of earlier processes: deaths by hash
}

const (
	renderingPrefix = ".rendering-"
	mostDeaths      = 6
	firstDelay      = 10 * time.Second
)

// NewRenderCrashes reads the marks of earlier processes.
func (s *Status) NewRenderCrashes() (*RenderCrashes, error) {
	r := &RenderCrashes{folder: s.folder, left: map[string]int{}}
	names, err := r.folder.names(func(name string) bool { hash, _ := parseRendering(name); return hash != "" })
	for _, name := range names {
		hash, deaths := parseRendering(name)
		r.left[hash] = max(r.left[hash], deaths)
	}
	return r, err
}

// rendering returns the name of a mark.
func rendering(hash string, deaths int) string {
	return renderingPrefix + hash + "-" + strconv.Itoa(deaths)
}

// parseRendering splits a mark's name. For any other name, the hash is empty.
func parseRendering(name string) (hash string, deaths int) {
	hash, count, _ := strings.Cut(strings.TrimPrefix(name, renderingPrefix), "-")
	deaths, err := strconv.Atoi(count)
	if err != nil || deaths < 1 || deaths > mostDeaths || rendering(hash, deaths) != name || len(hash) != len(hashOf("")) {
		return "", 0
	}
	return hash, deaths
}

func hashOf(key targets.Key) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:16])
}

// Delay returns how long after its start a process waits before it renders a target. The
// delay grows with the number of processes that died, so that eventually all other
// targets are rendered.
func (r *RenderCrashes) Delay(key targets.Key) time.Duration {
	if r == nil {
		return 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if deaths := r.left[hashOf(key)]; deaths > 0 {
		return firstDelay << (deaths - 1)
	}
	return 0
}

// Begin marks a target as being rendered until the returned function is called. If the
// folder is not writable, nothing is recorded.
func (r *RenderCrashes) Begin(key targets.Key) (end func()) {
	if r == nil {
		return func() {}
	}
	hash := hashOf(key)
	r.mu.Lock()
	deaths := r.left[hash]
	r.mu.Unlock()
	next := rendering(hash, min(deaths+1, mostDeaths))
	_ = r.folder.in(func(root *os.Root) error { return note{mode: 0o600}.create(root, next) })
	return func() {
		r.mu.Lock()
		delete(r.left, hash)
		r.mu.Unlock()
		for n := 1; n <= deaths+1; n++ {
			_ = r.folder.remove(rendering(hash, n))
		}
	}
}
