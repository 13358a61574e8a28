// Command webhook is an example of a service that Syncer sends the steps of a
// rotation to (rotation.sets[].http). It keeps in a file which tokens are good: one
// for each version, its password. See docs/rotation.md.
package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"log"
	"net/http"
	"os"
	"sync"
	"time"
)

type step struct {
	Step, Set, ID, Fence string
	Time                 time.Time
	Parts                map[string][]byte
}

// token is what is kept of a version: never the password itself.
type token struct {
	Fence, Hash string
	Revoked     bool
}

func handler(key []byte, path string) http.HandlerFunc {
	var one sync.Mutex // step at a time: this process alone has the file
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 64<<10))
		mac, s, tokens := hmac.New(sha256.New, key), step{}, map[string]token{}
		mac.Write(body)
		signature, _ := hex.DecodeString(r.Header.Get("Syncer-Signature"))
		if err != nil || !hmac.Equal(signature, mac.Sum(nil)) || json.Unmarshal(body, &s) != nil || time.Since(s.Time).Abs() > 5*time.Minute {
			http.Error(w, "not signed, or too old", http.StatusUnauthorized)
			return
		}
		one.Lock()
		defer one.Unlock()
		if kept, err := os.ReadFile(path); err == nil && json.Unmarshal(kept, &tokens) != nil || err != nil && !os.IsNotExist(err) {
			http.Error(w, "the file cannot be read", http.StatusInternalServerError) // an unknown outcome: it is repeated
			return
		}
		name, hash := s.Set+"/"+s.ID, sha256.Sum256(s.Parts["password"])
		is, text := tokens[name], hex.EncodeToString(hash[:])
		switch older, equal := s.Fence < is.Fence, s.Fence == is.Fence; {
		case s.Step == "apply" && !older && !(equal && is.Revoked):
			tokens[name] = token{s.Fence, text, false}
		case s.Step == "revoke" && (!older || is.Revoked):
			tokens[name] = token{max(s.Fence, is.Fence), "", true}
		case s.Step == "verify" && is.Hash == text && !is.Revoked, s.Step == "inUse":
			return // 200: yes, and nobody is known to use it
		default:
			http.Error(w, "no", http.StatusConflict) // it stays so: another fence, another password
			return
		}
		kept, _ := json.Marshal(tokens)
		if os.WriteFile(path+".new", kept, 0o600) != nil || os.Rename(path+".new", path) != nil {
			http.Error(w, "the file cannot be written", http.StatusInternalServerError)
		}
	}
}

func main() {
	log.Fatal(http.ListenAndServeTLS(":8443", "tls.crt", "tls.key", handler([]byte(os.Getenv("KEY")), "tokens.json")))
}
