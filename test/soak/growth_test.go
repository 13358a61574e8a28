//go:build long

package soak

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// sample is the resource usage of a process at one moment.
type sample struct {
	goroutines  float64
	descriptors float64
	threads     float64
	anonymous   float64 // resident memory that no file backs, in bytes
	heap        float64 // the heap at which the collector runs next, in bytes
}

// bound is how much more of a resource a process may use late in its life than early.
type bound struct {
	name  string
	of    func(sample) float64
	slack float64 // the permitted growth, absolute
	share float64 // and relative to the early figure
}

// bounds permit temporary objects, and the differences between two parts of a random
// schedule. A leak of one goroutine or descriptor for each refresh, or for each action of
// one kind, exceeds them within two minutes.
var bounds = []bound{
	// A request, a watch or a sync under way is two or three goroutines, and
	// one descriptor.
	{"goroutines", func(s sample) float64 { return s.goroutines }, 4, 0},
	{"descriptors", func(s sample) float64 { return s.descriptors }, 2, 0},
	// The runtime starts a thread when all are in system calls, and keeps it.
	// With two processors it has seldom more than ten.
	{"threads", func(s sample) float64 { return s.threads }, 4, 0},
	// The runtime returns free pages late, so resident memory includes the garbage of a few
	// collections.
	{"anonymous memory", func(s sample) float64 { return s.anonymous }, 2 << 20, 0.1},
	// With the collector of newConjur, the heap is 1.1 times the live objects. These include
	// buffers for a few values of the largest size.
	{"heap", func(s sample) float64 { return s.heap }, 512 << 10, 0.05},
}

// thirds are the samples after the warm-up, the first and the last third.
func thirds(samples []sample) (early, late []sample) {
	samples = samples[len(samples)/5:]
	n := len(samples) / 3
	return samples[:n], samples[len(samples)-n:]
}

// grown compares the last third of a life with the first one after the
// warm-up, a fifth of it, and returns what is out of bounds. Of the last third
// it takes the lowest tenth, when the process has little to do: what is under way
// adds to that, on a slow machine most of the time, and a leak adds to every
// sample that comes after it. Of the first third it takes the middle, as a process
// without an API server, which comes back after seconds, takes less than it needs.
func grown(samples []sample) (faults, figures []string) {
	early, late := thirds(samples)
	if len(early) < 10 {
		return []string{fmt.Sprintf("%d samples are too few to tell growth from chance", len(samples))}, nil
	}
	for _, b := range bounds {
		before, after := part(early, b.of, 0.5), part(late, b.of, 0.1)
		figure := fmt.Sprintf("%s: %.0f, then %.0f", b.name, before, after)
		figures = append(figures, figure)
		if most := before*(1+b.share) + b.slack; after > most {
			faults = append(faults, fmt.Sprintf("%s; at most %.0f is no growth", figure, most))
		}
	}
	return faults, figures
}

// part returns what this part of the samples is below.
func part(samples []sample, of func(sample) float64, share float64) float64 {
	var all []float64
	for _, s := range samples {
		all = append(all, of(s))
	}
	slices.Sort(all)
	return all[int(share*float64(len(all)))]
}

// life simulates a process without growth for two minutes. leak changes its sample of each
// second.
func life(leak func(second float64, s *sample)) (samples []sample) {
	random := rand.New(rand.NewPCG(1, 2))
	for second := range 120 {
		s := sample{
			goroutines: 20 + 3*random.Float64(), descriptors: 9 + 2*random.Float64(), threads: 8 + random.Float64(),
			anonymous: 12e6 + 2e6*random.Float64(), heap: 4e6 + 2e5*random.Float64(),
		}
		if second < 12 {
			s.anonymous /= 2
		}
		if second%20 == 0 { // a bad moment
			s.goroutines, s.anonymous = 100, 30e6
		}
		leak(float64(second), &s)
		samples = append(samples, s)
	}
	return samples
}

func TestGrowthIsTold(t *testing.T) {
	for name, leak := range map[string]func(float64, *sample){
		"a goroutine each ten seconds":   func(second float64, s *sample) { s.goroutines += second / 10 },
		"a descriptor each ten seconds":  func(second float64, s *sample) { s.descriptors += second / 10 },
		"a thread each ten seconds":      func(second float64, s *sample) { s.threads += second / 10 },
		"100 kB a second, not of Go":     func(second float64, s *sample) { s.anonymous += second * 1e5 },
		"20 kB a second, of the heap":    func(second float64, s *sample) { s.heap += second * 2e4 },
		"nothing, but it lived not long": nil,
	} {
		samples := life(func(float64, *sample) {})[:30]
		if leak != nil {
			samples = life(leak)
		}
		if faults, _ := grown(samples); len(faults) != 1 {
			t.Errorf("%s: %q, want one fault", name, faults)
		}
	}
	for name, none := range map[string]func(float64, *sample){
		"nothing": func(float64, *sample) {},
		"an API server that is away early, and watches with it": func(second float64, s *sample) {
			if second > 30 && second < 40 {
				s.goroutines -= 10
			}
		},
	} {
		if faults, _ := grown(life(none)); faults != nil {
			t.Errorf("%s is called growth: %q", name, faults)
		}
	}
}
