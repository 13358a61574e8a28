// Package rotation rotates the logins of a genuine PostgreSQL while programs use
// them, and while things go wrong.
package rotation

import (
	"flag"
	"testing"

	"go.uber.org/goleak"

	"github.com/secretsync/syncer/test/gobuild"
	"github.com/secretsync/syncer/test/length"
	"github.com/secretsync/syncer/test/pgtest"
	"github.com/secretsync/syncer/test/proctest"
)

var (
	rotations = length.Flag("rotations", 100, 20, "how many rotations the clients live through, all together")
	elsewhere = length.Flag("rotations-elsewhere", 20, 5, "the same with MariaDB, Redis and RabbitMQ, each")
	busy      = flag.Bool("busy", false, "clients log in without pause, instead of when their file changes and now and then between them")
	pause     = length.Flag("pause", 10, 200, "milliseconds between two log-ins that no change causes")
	seeds     = length.Seeds()
)

var postgres *pgtest.Server

func TestMain(m *testing.M) {
	if !gobuild.Race() { // the race detector makes the tests compute instead of wait
		proctest.AtOnce(8)
	}
	goleak.VerifyTestMain(pgtest.Main(m, &postgres))
}
