package pgtest

import (
	"testing"

	"go.uber.org/goleak"
)

var server *Server

func TestMain(m *testing.M) { goleak.VerifyTestMain(Main(m, &server)) }

// What was committed is there after a crash.
func TestServerComesBackAfterACrash(t *testing.T) {
	server.Query(t, "postgres", "DROP TABLE IF EXISTS kept; CREATE TABLE kept (n int); INSERT INTO kept VALUES (7)")
	server.Crash()
	if _, err := server.query("postgres", "SELECT 1"); err == nil {
		t.Error("it answers after its end")
	}
	server.Restart(t)
	if rows := server.Query(t, "postgres", "SELECT n, n + 1 FROM kept"); len(rows) != 1 || rows[0] != "7 8" {
		t.Errorf("%q is there", rows)
	}
}
