// Package gobuild builds the programs that tests start.
package gobuild

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
)

// Build builds a package as the file path. The package is as seen from the
// folder dir, "" for the working folder; flags are those of go build. The
// program is static, unless -race is among them.
func Build(path, dir, pkg string, flags ...string) error {
	cmd := exec.Command("go", slices.Concat([]string{"build", "-o", path}, flags, []string{pkg})...)
	cmd.Dir = dir
	if cmd.Env = os.Environ(); !slices.Contains(flags, "-race") {
		cmd.Env = append(cmd.Env, "CGO_ENABLED=0")
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building %s: %w\n%s", pkg, err, out)
	}
	return nil
}
