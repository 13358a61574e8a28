package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// smallFigures measures a server with a few hundred variables.
func smallFigures(ctx context.Context, s *subject, requests int) ([]figure, error) {
	single, err := median(requests, func(i int) error { return s.read(ctx, i%500) })
	if err != nil {
		return nil, err
	}
	one, err := median(requests, func(int) error { return s.batch(ctx, 0, 1) })
	if err != nil {
		return nil, err
	}
	many, err := median(requests/5, func(int) error { return s.batch(ctx, 0, 200) })
	if err != nil {
		return nil, err
	}
	login, err := median(requests/5, func(int) error { _, err := s.authenticate(ctx); return err })
	if err != nil {
		return nil, err
	}
	perID := (many - one) / 199
	return []figure{
		{"single read", ms(single), "5.5 ms", "0.55 ms"},
		{"each further id of a batch", ms(perID), "0.85 ms", "0.085 ms"},
		{"authenticate by API key", ms(login), "7 ms", "1.75 ms"},
	}, nil
}

// largeFigures measures a server with many variables, and with many concurrent
// clients.
func largeFigures(ctx context.Context, s *subject, requests, variables int) ([]figure, error) {
	step := max(variables/50, 250)
	batch, err := median(requests/5, func(i int) error { return s.batch(ctx, i*step%(variables-250), 250) })
	if err != nil {
		return nil, err
	}
	const clients = 100
	rate, slow, err := load(ctx, s, clients, requests, variables)
	if err != nil {
		return nil, err
	}
	peak, anon, err := memory(s.cmd.Process.Pid)
	if err != nil {
		return nil, err
	}
	return []figure{
		{fmt.Sprintf("batch of 250 among %d variables", variables), ms(batch), "(212 ms)", "5 ms"},
		{fmt.Sprintf("%d clients at once, single reads", clients), fmt.Sprintf("%.0f/s, p99 %s", rate, ms(slow)), "", ""},
		{"peak memory, of which anonymous at the end", fmt.Sprintf("%d MiB, %d MiB", peak>>20, anon>>20), "", "150 MiB"},
	}, nil
}

// median returns the median duration of n runs of f, after some warm-up runs.
func median(n int, f func(i int) error) (time.Duration, error) {
	for i := range min(n, 20) {
		if err := f(i); err != nil {
			return 0, err
		}
	}
	times := make([]time.Duration, n)
	for i := range times {
		begin := time.Now()
		if err := f(i); err != nil {
			return 0, err
		}
		times[i] = time.Since(begin)
	}
	slices.Sort(times)
	return times[n/2], nil
}

// load makes many clients read at once. It returns the reads per second and the
// 99th percentile of their duration.
func load(ctx context.Context, s *subject, clients, requests, variables int) (rate float64, slow time.Duration, err error) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	var times []time.Duration
	begin := time.Now()
	for c := range clients {
		wg.Go(func() {
			for i := range requests / 5 {
				sent := time.Now()
				readErr := s.read(ctx, (c*7919+i)%variables)
				mu.Lock()
				times = append(times, time.Since(sent))
				if readErr != nil {
					err = readErr
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	took := time.Since(begin)
	slices.Sort(times)
	return float64(len(times)) / took.Seconds(), times[len(times)*99/100], err
}

// memory returns the peak resident set and its current anonymous part, in bytes.
func memory(pid int) (peak, anon int64, err error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, 0, err
	}
	read := func(name string) int64 {
		_, rest, _ := strings.Cut(string(status), name+":")
		fields := strings.Fields(rest)
		if len(fields) == 0 {
			return 0
		}
		kib, _ := strconv.ParseInt(fields[0], 10, 64)
		return kib << 10
	}
	return read("VmHWM"), read("RssAnon"), nil
}

func ms(d time.Duration) string { return fmt.Sprintf("%.3f ms", float64(d)/float64(time.Millisecond)) }
