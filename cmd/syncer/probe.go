package main

import (
	"github.com/spf13/cobra"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/pkg/notify"
)

// newProbeCommand makes the commands for containers without a shell. They replace the
// scripts in the status folder.
func newProbeCommand() *cobra.Command {
	var dir string
	probe := &cobra.Command{
		Use:   "probe",
		Short: "Answer a liveness, readiness or startup probe from the status folder",
	}
	probe.PersistentFlags().StringVar(&dir, "status-dir", config.DefaultStatusDir, "the folder of sentinel files")
	add := func(name, short string, ask func(dir string) error) {
		probe.AddCommand(&cobra.Command{
			Use: name, Short: short,
			RunE: func(*cobra.Command, []string) error { return ask(dir) },
		})
	}
	add("provided", "Succeed if all secrets were provided once", notify.Provided)
	add("unchanged", "Fail once after the secrets were updated, so that the container restarts", notify.Unchanged)
	add("alive", "Succeed if the sidecar sent a heartbeat since the last such probe", notify.Alive)
	return probe
}
