package main

import (
	"cmp"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/pkg/conjur/authn/inject"
)

// isShell reports whether the binary was called by the name sh, as Conjur's
// authn-k8s does in a container that asked for a certificate.
func isShell(args []string) bool { return len(args) > 0 && filepath.Base(args[0]) == "sh" }

// receive takes up that certificate, and does nothing else that a shell would
// do. It returns the exit status.
func receive(scripts []inject.Script) int {
	signal.Ignore(unix.SIGPIPE) // whoever called may listen no more
	status, err := inject.Receiver{
		Path:    cmp.Or(os.Getenv(config.InboxVariable), config.DefaultInbox),
		Scripts: scripts,
		Args:    os.Args[1:],
		Stdin:   os.Stdin,
	}.Receive()
	if err != nil {
		fmt.Fprintf(os.Stderr, "syncer, called sh to take up a certificate from Conjur: %v\n", err)
	}
	return status
}
