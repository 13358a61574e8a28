package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// kubernetes are the versions that "make test-versions" tests. The empty one is that of
// test/kube/go.mod; test/kube/build.sh knows the others.
var kubernetes = []string{"1.34.4", "1.35.4", "1.36.3", ""}

// withNode are those whose kubelet is tested too.
var withNode = []string{"1.36.3", ""}

// served are the packages whose tests depend on the version of the API server.
var served = []string{"./test/cluster", "./pkg/kube", "./pkg/sinks/kubesecrets", "./test/deploy"}

// versions is "make test-versions".
func versions() []step {
	var steps []step
	for _, v := range kubernetes {
		env := []string{static, "SYNCER_KUBE_VERSION=" + v}
		v = cmp.Or(v, "of go.mod")
		steps = append(steps,
			step{name: "find or build Kubernetes " + v, args: []string{"test/kube/build.sh"}, env: env, save: "SYNCER_KUBE"},
			step{name: "tests with Kubernetes " + v, args: goTest(served, "-short", "-json"), env: append(lenient, env...), plane: true, named: true},
		)
	}
	for _, v := range withNode {
		steps = append(steps, step{name: "Pods on a kubelet of Kubernetes " + cmp.Or(v, "of go.mod"), args: []string{"make", "-s", "test-node"}, env: []string{"SYNCER_KUBE_VERSION=" + v}})
	}
	return steps
}

// report writes the output of "go test -json" without that of tests that passed, and
// returns the names of the tests that were skipped.
func report(to io.Writer, output string) (skipped []string) {
	type test struct{ Package, Test string }
	unfinished := map[test]string{} // to its output
	for line := range strings.Lines(output) {
		var e struct {
			test
			Action, Output string
		}
		if json.Unmarshal([]byte(line), &e) != nil {
			fmt.Fprint(to, line)
			continue
		}
		switch {
		case e.Test == "":
			fmt.Fprint(to, e.Output)
		case e.Action == "output":
			unfinished[e.test] += e.Output
		}
		if e.Action == "skip" && e.Test != "" {
			skipped = append(skipped, e.Package+" "+e.Test)
		}
		switch e.Action {
		case "pass", "skip":
			delete(unfinished, e.test)
		case "fail": // of a package: also what did not end
			for t, output := range unfinished {
				if t.Package == e.Package && (e.Test == "" || t == e.test) {
					fmt.Fprint(to, output)
					delete(unfinished, t)
				}
			}
		}
	}
	return skipped
}
