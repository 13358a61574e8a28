package main

import (
	"cmp"
	"os"
	"runtime"
	"slices"
	"strconv"
)

// static is how the essential run compiles: without cgo, so that the product,
// vet and the tests share what the compiler has made.
const static = "CGO_ENABLED=0"

// lenient is for runs of many tests: the garbage collector runs less often, and
// a process under the race detector does not sleep for a second at its end.
var lenient = []string{"GOGC=400", "GORACE=atexit_sleep_ms=0"}

// longest are the packages whose tests take longest. They start first.
var longest = []string{"./test/cluster", "./cmd/syncer", "./pkg/kube", "./test/rotation", "./pkg/sinks/...", "./test/deploy", "./test/removal", "./pkg/rotation", "./pkg/render"}

// prepare gets what tests need and the repository does not have.
func prepare() []step {
	return []step{
		{name: "download modules", args: goCommand("mod", "download")},
		{name: "find or install PostgreSQL", args: []string{"test/pgtest/install.sh"}},
		{name: "find or build etcd and kube-apiserver", args: []string{"test/kube/build.sh"}, save: "SYNCER_KUBE"},
	}
}

// essential is "make test".
func essential() []step {
	return append(prepare(),
		step{name: "format", args: []string{"make", "-s", "format"}},
		step{name: "vet", args: goCommand("vet", "./..."), env: []string{static}},
		step{name: "tests", args: goTest(append(longest, "./..."), "-short"), env: append(lenient, static), plane: true},
		step{name: "tests of the module keyset", dir: "keyset", args: goCommand("test", "./..."), env: []string{static}},
	)
}

// everything is "make test-all".
func everything() []step {
	return append(prepare(),
		step{name: "find or install servers with logins", args: []string{"test/logintest/install.sh"}},
		step{name: "lint", args: []string{"make", "-s", "lint"}},
		step{name: "all tests, race detector", args: goTest(slices.Concat([]string{"./test/soak", "./test/samples"}, longest, []string{"./..."}), "-race", "-tags", "long"), env: lenient, plane: true},
		step{name: "tests of the control plane's module, race detector", dir: "test/kube", args: goCommand("test", "-race", "-timeout", "20m", "./plane")},
		step{name: "tests of the module keyset, race detector", dir: "keyset", args: goCommand("test", "-race", "./...")},
		step{name: "files for the kubelet's own parser", dir: "test/clients", args: goCommand("test", "./kubelet")},
		step{name: "long histories of removal", args: goCommand("test", "-timeout", "20m", "-run", "TestHistories", "./test/removal")},
		step{name: "long histories and models of versions", args: goCommand("test", "-timeout", "20m", "./pkg/rotation/versions", "-histories", "100000")},
		step{name: "upgrade from the previous release, and back", args: []string{"make", "-s", "test-upgrade"}},
		step{name: "alerts in a Prometheus", args: []string{"make", "-s", "test-alerts"}},
		step{name: "status page in a browser", args: []string{"make", "-s", "test-page"}},
		step{name: "Pods on a kubelet", args: []string{"make", "-s", "test-node"}},
	)
}

// goCommand runs the go command, which GO may name.
func goCommand(args ...string) []string {
	return slices.Concat([]string{cmp.Or(os.Getenv("GO"), "go")}, args)
}

// goTest tests packages, several at once since most tests wait most of the time.
func goTest(packages []string, flags ...string) []string {
	atOnce := strconv.Itoa(3 * runtime.NumCPU())
	return slices.Concat(goCommand("test", "-vet=off", "-timeout", "40m", "-p", atOnce), flags, packages)
}
