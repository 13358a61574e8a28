package faults

import (
	"encoding/json"
	"fmt"
)

// Judge checks all values that a set of keys had, the oldest first. It returns an error if
// one id ever had two keys, or if a key disappeared before it was retired. It knows only the
// format of sets.
func Judge(values [][]byte) error {
	keys, alive := map[string]string{}, map[string]bool{}
	for n, value := range values {
		var set struct {
			Versions []struct {
				ID, State string
				Parts     struct{ Key string }
			}
		}
		if err := json.Unmarshal(value, &set); err != nil {
			return fmt.Errorf("value %d is no set", n+1)
		}
		there := map[string]bool{}
		for _, v := range set.Versions {
			there[v.ID] = true
			if v.State == "retired" {
				delete(alive, v.ID)
				continue
			}
			if was, known := keys[v.ID]; known && was != v.Parts.Key {
				return fmt.Errorf("value %d has another key for %s", n+1, v.ID)
			}
			keys[v.ID], alive[v.ID] = v.Parts.Key, true
		}
		for id := range alive {
			if !there[id] {
				return fmt.Errorf("value %d has lost %s", n+1, id)
			}
		}
	}
	return nil
}
