package store

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// A transaction reads its own writes, in order, whatever it wrote before. In a Try,
// nothing of that stays.
func TestATransactionReadsItsWrites(t *testing.T) {
	s, _ := open(t)
	random := rand.New(rand.NewPCG(1, 2))
	stored := map[string]string{}
	for round := range 40 {
		model := maps.Clone(stored)
		change := func(tx *Tx) error {
			for range random.IntN(200) {
				k := fmt.Sprintf("%c%d", 'a'+rune(random.IntN(3)), random.IntN(60))
				switch random.IntN(5) {
				case 0, 1:
					model[k] = fmt.Sprint(random.IntN(3))
					_ = tx.values.Put([]byte(k), []byte(model[k]))
				case 2:
					delete(model, k)
					_ = tx.values.Delete([]byte(k))
				case 3:
					if got := string(tx.values.Get([]byte(k))); got != model[k] {
						return fmt.Errorf("%s is %q instead of %q", k, got, model[k])
					}
				default:
					if err := scanned(tx, model, k[:1]); err != nil {
						return err
					}
				}
			}
			return scanned(tx, model, "")
		}
		run := s.Update
		if round%3 == 0 {
			run = s.Try
		}
		if err := run(change); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		if round%3 != 0 {
			stored = model
		}
		if err := s.View(func(tx *Tx) error { return scanned(tx, stored, "") }); err != nil {
			t.Fatalf("after round %d: %v", round, err)
		}
	}
}

// scanned compares what a scan yields with the model.
func scanned(tx *Tx, model map[string]string, start string) error {
	var got, want []string
	for k, v := range scan(tx.values, []byte(start)) {
		got = append(got, start+k+"="+string(v))
	}
	for _, k := range slices.Sorted(maps.Keys(model)) {
		if strings.HasPrefix(k, start) {
			want = append(want, k+"="+model[k])
		}
	}
	if !slices.Equal(got, want) {
		return errors.New("scan of " + start + ": " + strings.Join(got, " ") + " instead of " + strings.Join(want, " "))
	}
	return nil
}
