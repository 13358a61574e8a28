// Command webhook is an example of a service that Syncer sends the steps of a
// rotation to (rotation.sets[].http). It makes tokens, one for each version, and
// keeps in a file which are good, by the version's id. See docs/rotation.md.
package main

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"sync"
	"time"
)

type step struct {
	Step, Set, Identity, Claimed, ID, Fence string
	Time                                    time.Time
	Parts                                   map[string][]byte
}

// token is the record of a version, without the token itself.
type token struct {
	Identity         string // of the set, which may be declared anew under the same id
	Fence, Hash      string
	Settled, Revoked bool // settled: Syncer has it recorded
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
		name, has := s.Set+"/"+s.ID, s.Parts["token"]
		is, answer := tokens[name], map[string]map[string]string{}
		foreign := is.Fence != "" && is.Identity != s.Identity && is.Identity != "" && is.Fence > s.Claimed
		switch older, equal := s.Fence < is.Fence, s.Fence == is.Fence; {
		case foreign:
			http.Error(w, "of another set", http.StatusConflict)
			return
		case s.Step == "apply" && !older && !(equal && is.Revoked) && len(has) > 0:
			tokens[name] = token{s.Identity, s.Fence, hash(has), true, false}
		case s.Step == "apply" && !older && !(equal && is.Revoked) && !is.Settled:
			made := rand.Text() // replaces an earlier one of this version, whose answer was lost
			tokens[name] = token{s.Identity, s.Fence, hash([]byte(made)), false, false}
			answer["parts"] = map[string]string{"token": base64.StdEncoding.EncodeToString([]byte(made))}
		case s.Step == "revoke" && (!older || is.Revoked):
			tokens[name] = token{s.Identity, max(s.Fence, is.Fence), "", true, true}
		case s.Step == "verify" && is.Hash == hash(has) && !is.Revoked, s.Step == "inUse":
			return // 200: yes, and nobody is known to use it
		default:
			http.Error(w, "no", http.StatusConflict) // it stays so: another fence, another token
			return
		}
		kept, _ := json.Marshal(tokens)
		if os.WriteFile(path+".new", kept, 0o600) != nil || os.Rename(path+".new", path) != nil {
			http.Error(w, "the file cannot be written", http.StatusInternalServerError)
			return
		}
		_ = json.NewEncoder(w).Encode(answer)
	}
}

func hash(text []byte) string { return fmt.Sprintf("%x", sha256.Sum256(text)) }

func main() {
	log.Fatal(http.ListenAndServeTLS(":8443", "tls.crt", "tls.key", handler([]byte(os.Getenv("KEY")), "tokens.json")))
}
