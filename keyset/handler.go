package keyset

import (
	"encoding/json"
	"net/http"
	"time"
)

// Handler returns a handler that answers GET with this process's keys and their
// last use, in JSON:
//
//	{"ids":["r1","r2"],"primary":"r2","used":{"r1":86400,"r2":0}}
//
// The numbers are the seconds since Primary, ByID, Seal or Open returned or used
// the key. Keys that were never used are omitted. The answer contains no key
// material. Syncer uses it to decide whether a rotation may continue.
func (s *Set) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "this address answers GET", http.StatusMethodNotAllowed)
			return
		}
		st := s.recentState()
		answer := struct {
			IDs     []string         `json:"ids"`
			Primary string           `json:"primary"`
			Used    map[string]int64 `json:"used"`
		}{Primary: st.keys[st.primary].ID, Used: make(map[string]int64)}
		for _, key := range st.keys {
			answer.IDs = append(answer.IDs, key.ID)
			if used := key.used.Load(); used != 0 {
				answer.Used[key.ID] = (s.now() - used) / int64(time.Second)
			}
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		json.NewEncoder(w).Encode(answer)
	})
}
