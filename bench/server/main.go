// Command server measures the embedded Conjur-compatible server. It compares the
// figures with those of the genuine server on a similar machine.
//
// Method: conjurd runs as a separate process (the syncer binary), over TLS on
// loopback, with its data in a file. This process is the client. A figure is the
// median of many sequential requests on one kept connection. Therefore it includes
// the client's share. Memory is the server's, from /proc.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"text/tabwriter"
	"time"

	"github.com/secretsync/syncer/internal/terminal"
)

func main() {
	syncer := flag.String("syncer", "bin/syncer", "the binary to measure")
	requests := flag.Int("requests", 500, "how many requests make a median")
	variables := flag.Int("variables", 100_000, "how many variables the large store has")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var figures []figure
	err := terminal.During(os.Stderr, "measuring", func() (err error) {
		figures, err = measure(ctx, *syncer, *requests, *variables)
		return err
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	report(figures)
}

// figure is one line of the report. The genuine server's figure is from an earlier
// recording.
type figure struct {
	name     string
	measured string
	genuine  string
	reach    string
}

func measure(ctx context.Context, syncer string, requests, variables int) ([]figure, error) {
	small, err := startServer(ctx, syncer, 500)
	if err != nil {
		return nil, err
	}
	defer small.stop()
	figures, err := smallFigures(ctx, small, requests)
	if err != nil {
		return nil, err
	}
	small.stop()

	large, err := startServer(ctx, syncer, variables)
	if err != nil {
		return nil, err
	}
	defer large.stop()
	more, err := largeFigures(ctx, large, requests, variables)
	return append(figures, more...), err
}

func report(figures []figure) {
	fmt.Printf("conjurd, %s, %d cores, %s %s/%s\n\n", time.Now().UTC().Format("2006-01-02"), runtime.NumCPU(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "figure\tmeasured\tgenuine server (recorded)\tto reach")
	for _, f := range figures {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", f.name, f.measured, f.genuine, f.reach)
	}
	_ = w.Flush()
}
