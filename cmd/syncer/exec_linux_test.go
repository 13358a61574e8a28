package main

import (
	"os/exec"
	"testing"

	"github.com/secretsync/syncer/test/podtest"
)

// As the first process of a container, exec gets the orphans of all others.
func TestExecWaitsForOrphans(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.group("db", "json", "db/password")
	script := `
		for i in 1 2 3 4 5 6 7 8 9 10; do (sh -c 'sleep 0.1 & echo $! >> "$world/orphans"' &); done
		while [ "$(wc -l < "$world/orphans")" -lt 10 ]; do sleep 0.05; done
		while :; do
			left=0
			for pid in $(cat "$world/orphans"); do if [ -e "/proc/$pid" ]; then left=1; fi; done
			if [ $left = 0 ]; then exit 9; fi
			sleep 0.05
		done`
	alone := func(cmd *exec.Cmd) error { return podtest.Alone(cmd, 0) }
	w.execBy(alone, nil, "sh", "-c", script).Exit(9)
}
