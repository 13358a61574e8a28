package rotation

import (
	"time"

	"github.com/secretsync/syncer/pkg/rotation/actuators"
	"github.com/secretsync/syncer/pkg/rotation/generate"
	"github.com/secretsync/syncer/pkg/rotation/versions"
)

// Plan is a set and its rotation settings.
type Plan struct {
	ID       string // of the variable
	Generate generate.Config
	Schedule Schedule
	Policy   versions.Policy
	// Consumers reports the progress of the set's consumers; nil means no consumers.
	Consumers Consumers
	// Actuator makes an outside system accept versions; nil means that the versions are
	// keys. Sets with the same Outside share its failures.
	Actuator actuators.Actuator
	Outside  string
	// Timeout is the time limit of one act of Actuator, which enforces the limit itself.
	// The step gets this time in addition to Config.Timeout; 0 adds nothing.
	Timeout time.Duration
	Publish map[string]versions.Published // by the variable's id
	Adopt   map[string]string             // the variable's id, by the part that it becomes
}
