package consumers

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/secretsync/syncer/pkg/rotation"
	"github.com/secretsync/syncer/pkg/rotation/versions"
)

// Check returns all reasons why the consumers of a set cannot be followed. Objects may be
// missing or unreadable. Pods may not answer, may lack the primary, or are not asked. A
// migration may be unable to begin.
func (c *Consumers) Check(ctx context.Context, doc *versions.Document, shown []rotation.Shown) (problems []string) {
	primary, used := doc.Primary()
	secrets := readable(shown)
	problems = behind(secrets, primary.Step)
	if a := c.unread(doc, shown, true); !a.Open {
		problems = append(problems, a.Waits)
	}
	if c.asks() {
		seen := c.look(ctx, time.Now(), secrets)
		against, _ := seen.against("does not have "+primary.ID, func(h Holding) bool { return slices.Contains(h.IDs, primary.ID) })
		switch {
		case !used: // no consumer can have anything yet
			problems = append(problems, seen.broken...)
		case against != "":
			problems = append(problems, against)
			seen.unasked = nil // its message names them
		}
		if len(seen.unasked) > 0 {
			problems = append(problems, seen.others())
		}
	}
	if c.cronJob != "" {
		if err := c.tryMigration(ctx, secrets); err != nil {
			problems = append(problems, err.Error())
		}
	}
	return problems
}

// Unasked returns the Pods that use a Secret of the set but are not asked, as seen within
// the last hour. If shown is nil, it is unknown what uses the set.
func (c *Consumers) Unasked(ctx context.Context, shown []rotation.Shown) []string {
	if shown != nil && c.hasPods() && time.Since(c.listed) > time.Hour {
		_ = c.lookAtPods(ctx, &snapshot{}, readable(shown)) // Check reports the errors
	}
	return c.unasked
}

// tryMigration asks the API server in a dry run whether it would accept the migration's
// Job.
func (c *Consumers) tryMigration(ctx context.Context, secrets []rotation.Shown) error {
	namespace, err := c.home(secrets)
	if err != nil {
		return fmt.Errorf("cronjob/%s: %w", c.cronJob, err)
	}
	name := jobName(c.cronJob, c.Set, "check")
	if _, err := c.Cluster.Batch.Jobs(namespace).Get(ctx, name, metav1.GetOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return wrap(err, "reading job/%s of namespace %s", name, namespace)
	}
	_, err = c.makeJob(ctx, namespace, name, map[string]string{"SYNCER_SET": c.Set}, metav1.DryRunAll)
	return err
}
