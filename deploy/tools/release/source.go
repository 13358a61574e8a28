package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

// checkOut clones the present commit, so that nothing else takes part in the build. It
// gives the clone the release's tag: the go command takes the version of the binaries
// from it.
func (r *release) checkOut(ctx context.Context, repo string) error {
	changed, err := r.output(ctx, repo, nil, "git", "status", "--porcelain", "--untracked-files=normal", "--ignore-submodules=none")
	if err != nil {
		return err
	}
	if changed != "" {
		return fmt.Errorf("the working tree has changes that are not committed: commit or stash them\n%s", changed)
	}
	if r.commit, err = r.output(ctx, repo, nil, "git", "rev-parse", "HEAD"); err != nil {
		return err
	}
	if err := r.checkTag(ctx, repo); err != nil {
		return err
	}
	root, err := r.output(ctx, repo, nil, "git", "rev-parse", "--show-toplevel")
	if err != nil {
		return err
	}
	when, err := r.output(ctx, repo, nil, "git", "show", "-s", "--format=%cI", "HEAD")
	if err != nil {
		return err
	}
	if r.committed, err = time.Parse(time.RFC3339, when); err != nil {
		return err
	}
	r.committed = r.committed.UTC()
	for _, args := range [][]string{
		// What the user has set for Git must not change the files.
		{"clone", "--quiet", "--no-tags", "--no-checkout", "--template=", "--config=core.autocrlf=false",
			"--config=core.attributesFile=" + os.DevNull, "--config=core.hooksPath=" + os.DevNull, root, r.source},
		{"-C", r.source, "checkout", "--quiet", "--detach", r.commit},
		{"-C", r.source, "-c", "tag.gpgSign=false", "tag", "v" + r.version},
	} {
		if _, err := r.output(ctx, repo, nil, "git", args...); err != nil {
			return err
		}
	}
	return r.checkVersion()
}

// checkTag refuses a version that another commit has. The tag itself may be made
// later.
func (r *release) checkTag(ctx context.Context, repo string) error {
	tags, err := r.output(ctx, repo, nil, "git", "for-each-ref", "--format=%(objectname) %(*objectname)", "refs/tags/v"+r.version)
	if err != nil {
		return err
	}
	if tags != "" && !strings.Contains(tags, r.commit) {
		return fmt.Errorf("the tag v%s is on another commit: check out that commit, or choose another version", r.version)
	}
	return nil
}

// checkVersion refuses a version that the commit does not have in its chart.
func (r *release) checkVersion() error {
	text, err := os.ReadFile(r.chart("Chart.yaml"))
	if err != nil {
		return err
	}
	var chart struct{ Version, AppVersion string }
	if err := yaml.Unmarshal(text, &chart); err != nil {
		return err
	}
	if chart.Version != r.version || chart.AppVersion != r.version {
		return fmt.Errorf("the version is %q, but Chart.yaml says version %s and appVersion %s: commit a Chart.yaml with the release's version first",
			r.version, chart.Version, chart.AppVersion)
	}
	return nil
}

// chart is the path of a file of the chart.
func (r *release) chart(name string) string {
	return filepath.Join(r.source, "deploy/chart/syncer", name)
}

// placesOfGit are the variables by which Git finds a repository, as hooks have them.
var placesOfGit = []string{"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY",
	"GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_NAMESPACE", "GIT_PREFIX"}

// output runs a command in a folder and returns its standard output. The environment is
// that of this process, and env. Git finds the repository by the folder alone.
func (r *release) output(ctx context.Context, dir string, env []string, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		if !slices.Contains(placesOfGit, name) {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, env...)
	// The go command waits for the compilers then.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return "", errors.Join(fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err), errors.New(strings.TrimSpace(errs.String())))
	}
	return strings.TrimSpace(string(out)), nil
}
