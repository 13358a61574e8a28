package actuators

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// Each failure of the outside names the likely cause and the next step.
func TestAFailureOutsideSaysWhatToDo(t *testing.T) {
	sql := func(code string) error { return fmt.Errorf("login: %w", &pgconn.PgError{Code: code}) }
	for says, err := range map[string]error{
		"check the password of the user":             sql(invalidPassword),
		"check pg_hba.conf":                          sql(invalidAuthorization),
		"grant the right":                            sql(insufficientPrivilege),
		"correct the database in the address":        sql("3D000"),
		"end sessions or raise max_connections":      sql("53300"),
		"while it starts or stops":                   sql("57P03"),
		"use the address of the primary":             sql("25006"),
		"check the port and whether the server runs": &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED},
		`the file with its CA certificate in "ca"`:   x509.UnknownAuthorityError{},
	} {
		got := advise(err)
		if !errors.Is(got, err) || !strings.HasPrefix(got.Error(), err.Error()+"; ") || !strings.Contains(got.Error(), says) {
			t.Errorf("%v: it should say %q", got, says)
		}
	}
	if err := errors.New("another"); advise(err).Error() != err.Error() || advise(nil) != nil {
		t.Error("an error without a known cause has got one")
	}
}
