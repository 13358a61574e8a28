// Package demo shows the pipeline at work, against its own server.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/secretsync/syncer/pkg/pipeline"
	"github.com/secretsync/syncer/pkg/queue"
	"github.com/secretsync/syncer/pkg/workers"
)

// Times of the demonstration.
const (
	pause   = 2 * time.Second  // between two steps
	longest = 15 * time.Second // for one change to arrive
)

// Run starts a server and the pipeline, and makes changes for the duration life. It
// writes how each change reached its file, without any value. The error names the change
// that did not.
func Run(ctx context.Context, life time.Duration, out io.Writer) (err error) {
	world, err := newWorld(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, world.close()) }()
	cfg, err := world.config()
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "Server   %s (account %s, 25 variables)\nFiles    %s\nRefresh  every %v\nPage     http://%s/status\nEnds     after %v; run syncer demo --for 1h to keep it running, and stop it with ^C\n\n",
		world.served.URL, account, cfg.Folders.Secrets, cfg.Refresh.Interval, cfg.Server.Address, life)

	stage := &stage{world: world, board: newBoard(out, world.groups), outcomes: make(chan outcome, 100)}
	parts := pipeline.Parts{Workers: 4, Grace: 5 * time.Second, Log: zap.NewNop(), Listener: stage}

	running, stop := context.WithCancel(ctx)
	defer stop()
	var wg sync.WaitGroup
	var pipelineErr error
	wg.Go(func() {
		defer stop() // its failure also stops the script
		pipelineErr = pipeline.Run(running, cfg, parts)
	})
	begin := time.Now()
	scriptErr := stage.play(running, begin.Add(life))
	stop()
	wg.Wait()
	if scriptErr == nil {
		fmt.Fprintf(out, "\n%d changes arrived, each in its file.\n", stage.arrived)
	}
	return errors.Join(scriptErr, pipelineErr)
}

// outcome is the pipeline's report of one sync.
type outcome struct {
	item   queue.Item
	result workers.Result
	at     time.Time
}

// stage makes the changes and observes their arrival.
type stage struct {
	world     *world
	board     *board
	outcomes  chan outcome
	arrived   int
	rotations int
}

// Settled forwards the outcome of a write. It never blocks. The stage checks the files
// themselves; it uses the outcome only for its trigger.
func (s *stage) Settled(o workers.Outcome) {
	if !o.Wrote {
		return
	}
	select {
	case s.outcomes <- outcome{o.Item, o.Result, time.Now()}:
	default:
	}
}

// play waits for the first delivery. Then it makes a change after every pause until the
// end.
func (s *stage) play(ctx context.Context, end time.Time) error {
	begin := time.Now()
	for range s.world.groups {
		if err := s.await(ctx, "first delivery", begin, nil); err != nil {
			return ignoreStop(ctx, err)
		}
	}
	script := []func() (change, error){
		s.rotate, s.editTemplate, s.rotate, s.revoke, s.restore, s.rotate,
	}
	next := begin.Add(pause)
	for i := 0; ; i++ {
		if wait := min(time.Until(next), time.Until(end)); wait > 0 {
			select {
			case <-ctx.Done():
				return nil // stopped between two changes
			case <-time.After(wait):
			}
		}
		if !time.Now().Before(end) {
			return nil
		}
		next = time.Now().Add(pause)
		step := s.rotate
		if i < len(script) {
			step = script[i]
		}
		made := time.Now()
		change, err := step()
		if err != nil {
			return err
		}
		if err := s.await(ctx, change.what, made, change.there); err != nil {
			return ignoreStop(ctx, err)
		}
	}
}

// ignoreStop replaces an error by nil if its only cause is that the user stopped the
// demonstration.
func ignoreStop(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil
	}
	return err
}

// await waits for an outcome after which the file contains the change, and shows it. If
// there is nil, any outcome counts.
func (s *stage) await(ctx context.Context, what string, made time.Time, there func() bool) error {
	patience := time.NewTimer(longest)
	defer patience.Stop()
	for {
		select {
		case o := <-s.outcomes:
			if there != nil && !there() {
				continue // an outcome of another change
			}
			s.arrived++
			return s.board.arrived(o, what, o.at.Sub(made))
		case <-ctx.Done():
			return fmt.Errorf("%s: %w before it arrived", what, ctx.Err())
		case <-patience.C:
			return fmt.Errorf("%s: not in its file after %v", what, longest)
		}
	}
}
