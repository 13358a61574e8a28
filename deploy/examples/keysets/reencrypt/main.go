// Command reencrypt seals a column anew under the primary of a key set, so that
// an old key can go. It is a migration Job of Syncer, which sets SYNCER_FROM and
// SYNCER_TO; see cronjob.yaml.
//
// It may be killed at any moment and run again: each batch is one transaction,
// and a finished batch is not repeated. Meanwhile the application goes on, since
// all of it writes under the new key already.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/jackc/pgx/v5"

	"github.com/secretsync/syncer/keyset"
)

const batch = 100 // rows of one transaction

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "reencrypt:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	from, to := os.Getenv("SYNCER_FROM"), os.Getenv("SYNCER_TO")
	keys, err := keyset.Open(os.Getenv("KEYS"))
	if err != nil {
		return err
	}
	if primary := keys.Primary().ID; primary != to || from == to {
		return fmt.Errorf("the primary is %s here, and the Job is to go from %q to %q", primary, from, to)
	}
	db, err := pgx.Connect(ctx, os.Getenv("DATABASE_URL"))
	if err != nil {
		return err
	}
	defer db.Close(context.WithoutCancel(ctx))
	for done := 0; ; {
		n, err := step(ctx, db, keys, from)
		if err != nil {
			return err
		}
		if done += n; n == 0 {
			fmt.Printf("%d rows are sealed anew, none is left under %s\n", done, from)
			return nil
		}
	}
}

// step seals a batch anew, and returns how many rows it had.
func step(ctx context.Context, db *pgx.Conn, keys *keyset.Set, from string) (n int, err error) {
	type customer struct {
		ID   int64
		Card string
	}
	err = pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		// An index on split_part(card, ':', 1) makes this quick in a large table.
		rows, err := tx.Query(ctx, `SELECT id, card FROM customers WHERE split_part(card, ':', 1) = $1 ORDER BY id LIMIT $2 FOR UPDATE`, from, batch)
		if err != nil {
			return err
		}
		all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[customer])
		if err != nil {
			return err
		}
		for _, c := range all {
			// The place is sealed with the value, so it cannot be copied to another row.
			place := fmt.Appendf(nil, "customers/%d/card", c.ID)
			plain, err := keys.Open(c.Card, place)
			if err != nil {
				return fmt.Errorf("customer %d: %w", c.ID, err)
			}
			card, err := keys.Seal(plain, place)
			if err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, `UPDATE customers SET card = $1 WHERE id = $2`, card, c.ID); err != nil {
				return err
			}
		}
		n = len(all)
		return nil
	})
	return n, err
}
