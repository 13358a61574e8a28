//go:build long

package soak

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/secretsync/syncer/test/proctest"
	"github.com/secretsync/syncer/test/world"
)

// monitor takes samples of a process, one a second.
type monitor struct {
	t       testing.TB
	pid     int
	address string
	client  http.Client

	stopping chan struct{}
	ended    sync.WaitGroup
	samples  []sample // the goroutine's until it has ended
	faults   []error
}

// observe begins to take samples of a process that serves its metrics.
func observe(t testing.TB, p *proctest.Process, address string) *monitor {
	m := &monitor{
		t: t, pid: p.PID(), address: address,
		client:   http.Client{Transport: &http.Transport{}, Timeout: 30 * time.Second},
		stopping: make(chan struct{}),
	}
	proctest.EventuallyNoError(m.t, "the metrics", func() error { _, err := m.metrics(); return err })
	m.ended.Go(func() {
		seconds := time.NewTicker(time.Second)
		defer seconds.Stop()
		for len(m.faults) == 0 {
			select {
			case <-m.stopping:
				return
			case <-seconds.C:
				m.sample()
			}
		}
	})
	m.t.Cleanup(m.end)
	return m
}

// end takes no more samples. It may be called again.
func (m *monitor) end() {
	select {
	case <-m.stopping:
	default:
		close(m.stopping)
	}
	m.ended.Wait()
	m.client.CloseIdleConnections()
}

// conclude ends a soak. It fails the test if nothing happened, if the process grew, or if
// the content is wrong after the process has ended.
func (m *monitor) conclude(p *proctest.Process, endReads func(), current func() error) {
	m.t.Helper()
	for _, counter := range []string{"syncer_syncs_total", "syncer_removals_total"} {
		m.happened(counter)
	}
	m.judge()
	p.Stop()
	endReads()
	if err := current(); err != nil {
		m.t.Errorf("after the end: %v", err)
	}
}

// judge ends the samples, and fails the test if they grew.
func (m *monitor) judge() {
	m.t.Helper()
	m.end()
	for _, fault := range m.faults {
		m.t.Error(fault)
	}
	faults, figures := grown(m.samples)
	for _, figure := range figures {
		m.t.Log(figure)
	}
	for _, fault := range faults {
		m.t.Errorf("the process grows: %s", fault)
	}
}

func (m *monitor) sample() {
	var s sample
	if err := errors.Join(m.ofRuntime(&s), m.ofKernel(&s)); err != nil {
		m.faults = append(m.faults, fmt.Errorf("sample %d: %w", len(m.samples), err))
		return
	}
	m.samples = append(m.samples, s)
}

// ofKernel reads the kernel's figures about the process.
func (m *monitor) ofKernel(s *sample) error {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", m.pid))
	if err != nil {
		return err
	}
	descriptors, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", m.pid))
	if err != nil {
		return err
	}
	s.descriptors = float64(len(descriptors))
	if s.anonymous, err = number(string(status), "RssAnon:"); err != nil {
		return err
	}
	s.anonymous *= 1 << 10
	s.threads, err = number(string(status), "Threads:")
	return err
}

// ofRuntime reads the process's own metrics.
func (m *monitor) ofRuntime(s *sample) error {
	text, err := m.metrics()
	if err != nil {
		return err
	}
	if found := world.Leak(text, world.Marker); found != "" {
		return fmt.Errorf("a value is in the metrics: %s", found)
	}
	if s.goroutines, err = number(text, "go_goroutines"); err != nil {
		return err
	}
	s.heap, err = number(text, "go_memstats_next_gc_bytes")
	return err
}

func (m *monitor) metrics() (string, error) {
	answer, err := m.client.Get("http://" + m.address + "/metrics")
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("metrics: %s", answer.Status)
	}
	return string(text), err
}

// happened fails the test unless a counter, summed over its series, is above zero. Otherwise
// the soak would show nothing.
func (m *monitor) happened(counter string) {
	m.t.Helper()
	text, err := m.metrics()
	if err != nil {
		m.t.Fatal(err)
	}
	n, err := number(text, counter)
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Logf("%s: %.0f", counter, n)
	if n == 0 {
		m.t.Errorf("%s is 0", counter)
	}
}

// number returns the sum of a metric over all its series.
func number(text, name string) (sum float64, err error) {
	err = fmt.Errorf("there is no %s", name)
	for line := range strings.Lines(text) {
		rest, ok := strings.CutPrefix(line, name)
		if _, after, labelled := strings.Cut(rest, "} "); labelled {
			rest = after
		}
		var n float64
		if !ok {
			continue
		}
		if _, bad := fmt.Sscan(rest, &n); bad != nil {
			return 0, fmt.Errorf("%s: %w", strings.TrimSpace(line), bad)
		}
		sum, err = sum+n, nil
	}
	return sum, err
}
