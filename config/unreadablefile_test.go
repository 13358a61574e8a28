package config_test

import (
	"strings"
	"testing"

	"github.com/secretsync/syncer/config"
)

// What a configuration file sets that cannot be read is not known: nothing is
// said to be missing.
func TestAFileThatCannotBeReadIsTheOnlyProblem(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"tab":           {"secretsDestination: file\n\tcontainerMode: sidecar\n", "not valid YAML: line 2: a tab begins the line"},
		"two documents": {"secretsDestination: file\n---\ncontainerMode: sidecar\n", "more than one YAML document"},
		"list":          {"- secretsDestination: file\n", "must be a map"},
	} {
		src := fileSources(t, c.text, nil, nil)
		found := problems(t, src)
		if len(found) != 1 || !strings.Contains(found[0].Message, c.want) {
			t.Errorf("%s: got %v, want one problem with %q", name, found, c.want)
		}
		if _, _, err := config.LoadRotation(src.Read()); err == nil || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: of a rotation got %v, want one problem with %q", name, err, c.want)
		}
	}
	src := fileSources(t, "", nil, nil)
	src.ConfigFile.Name = t.TempDir() // a folder
	if found := problems(t, src); len(found) != 1 || found[0].Key != src.ConfigFile.Name {
		t.Errorf("a folder: got %v", found)
	}
	src = fileSources(t, "- x\n", dict{"log-level": "loud"}, nil)
	if found := problems(t, src); len(found) != 2 {
		t.Errorf("an invalid annotation beside the file: got %v", found)
	}
}
