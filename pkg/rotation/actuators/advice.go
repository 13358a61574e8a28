package actuators

import "github.com/secretsync/syncer/internal/advice"

const namePooler = `write the database itself into "address", and a PgBouncer into "pooler"`

// sqlAdvice says what to do about an answer of PostgreSQL, by its code.
var sqlAdvice = map[string]string{
	invalidPassword:       "check the password of the user",
	invalidAuthorization:  "the server does not let this user log in; check pg_hba.conf and whether the role may log in",
	insufficientPrivilege: "grant the right; \"syncer rotate check\" lists each one that is missing",
	protocolViolation:     "so refuses a connection pooler, such as PgBouncer; " + namePooler + "; there its auth_file and stats_users need the administrator",
	"3D000":               "there is no such database; correct the database in the address",
	"53300":               "the server has too many sessions; end sessions or raise max_connections",
	"57P03":               "the server refuses sessions while it starts or stops; Syncer retries",
	"25006":               "the server is a standby; use the address of the primary",
}

// advise adds to an error of the outside what to do about it, if that is known.
func advise(err error) error {
	if step, ok := sqlAdvice[code(err)]; ok {
		return advice.Add(err, step)
	}
	return advice.Connection(err, "add its CA certificate to the set")
}
