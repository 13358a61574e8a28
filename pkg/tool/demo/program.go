package demo

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// program signs tokens with the primary of a key set and verifies the tokens of others,
// like programs with the module keyset.
type program struct {
	name, folder string
	listener     net.Listener
	server       *http.Server
}

func newProgram(folder, name string) (*program, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &program{name: name, folder: folder, listener: listener}
	p.server = &http.Server{Handler: p, ReadHeaderTimeout: time.Second}
	go func() { _ = p.server.Serve(listener) }()
	return p, nil
}

func (p *program) url() string { return "http://" + p.listener.Addr().String() + "/keys" }

func (p *program) close() { _ = p.server.Close() }

// ServeHTTP answers with the program's keys.
func (p *program) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	keys, primary := p.currentKeys()
	if primary == "" {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"ids": slices.Sorted(maps.Keys(keys)), "primary": primary})
}

// currentKeys returns the keys by their ids, and the primary, all from the same version of
// the folder. It returns none if there are no keys yet.
func (p *program) currentKeys() (keys map[string][]byte, primary string) {
	for range 100 { // if the folder was replaced, retry
		version, err := os.Readlink(filepath.Join(p.folder, "..data"))
		if err != nil {
			return nil, ""
		}
		if keys, primary, err = readKeys(filepath.Join(p.folder, version)); err == nil {
			return keys, primary
		}
	}
	return nil, ""
}

func readKeys(root string) (keys map[string][]byte, primary string, err error) {
	files, err := os.ReadDir(root)
	if err != nil {
		return nil, "", err
	}
	keys = map[string][]byte{}
	for _, f := range files {
		content, err := os.ReadFile(filepath.Join(root, f.Name()))
		if err != nil {
			return nil, "", err
		}
		id, _, _ := strings.Cut(f.Name(), ".")
		keys[id] = content
		if strings.HasSuffix(f.Name(), ".primary") {
			primary = id
		}
	}
	return keys, primary, nil
}

func (p *program) has(id string) bool {
	keys, _ := p.currentKeys()
	return keys[id] != nil
}

// sign returns a token; false while the program has no key.
func (p *program) sign(text string) (id string, mac []byte, ok bool) {
	keys, primary := p.currentKeys()
	if primary == "" {
		return "", nil, false
	}
	return primary, macOf(keys[primary], text), true
}

// verifyToken reports whether a token was signed with a key of the program.
func (p *program) verifyToken(id, text string, mac []byte) bool {
	keys, _ := p.currentKeys()
	return keys[id] != nil && hmac.Equal(mac, macOf(keys[id], text))
}

func macOf(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

// work makes each program sign and all programs verify, until ctx ends.
func (s *shop) work(ctx context.Context) {
	for ctx.Err() == nil {
		for _, signer := range s.programs {
			text := fmt.Sprint("order ", time.Now().UnixNano())
			id, mac, ok := signer.sign(text)
			if !ok {
				continue
			}
			for _, checker := range s.programs {
				if _, primary := checker.currentKeys(); primary == "" {
					continue // it has not started yet
				}
				good := checker.verifyToken(id, text, mac)
				s.mu.Lock()
				if s.signed++; !good {
					s.rejected = append(s.rejected, fmt.Sprintf("%s does not know %s of %s", checker.name, id, signer.name))
				}
				s.mu.Unlock()
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func (s *shop) tokens() (signed int, rejected []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.signed, s.rejected
}
