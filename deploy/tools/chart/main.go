// Command chart renders Syncer's chart, and kustomizations made from it, with
// the engines of Helm and Kustomize, but without their programs.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"

	"helm.sh/helm/v4/pkg/strvals"

	"github.com/secretsync/syncer/deploy/tools/internal/charts"
)

const usage = `usage: chart render [flags] CHART      print the objects of a release
       chart kustomize DIRECTORY       print the objects of a kustomization
`

func main() {
	if err := run(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "chart: %v\n", err)
		os.Exit(1)
	}
}

func run(args []string, in io.Reader, out io.Writer) error {
	if len(args) == 0 {
		args = []string{""}
	}
	switch args[0] {
	case "render":
		return runRender(args[1:], in, out)
	case "kustomize":
		if len(args) != 2 {
			return fmt.Errorf("want one directory\n%s", usage)
		}
		return charts.Kustomize(out, args[1])
	}
	return fmt.Errorf("no command %q\n%s", args[0], usage)
}

func runRender(args []string, in io.Reader, out io.Writer) error {
	r := charts.Release{Set: map[string]any{}}
	flags := flag.NewFlagSet("render", flag.ExitOnError)
	flags.StringVar(&r.Name, "release", "syncer", "the release's name")
	flags.StringVar(&r.Namespace, "namespace", "syncer", "the release's namespace")
	flags.IntVar(&r.Revision, "revision", 1, "the release's revision")
	flags.StringVar(&r.KubeVersion, "kube-version", "v1.36.0", "the cluster's version")
	flags.Func("api-version", "an API version, or its kind, that the cluster serves (repeatable)", func(text string) error {
		r.APIVersions = append(r.APIVersions, text)
		return nil
	})
	flags.BoolVar(&r.Notes, "notes", false, "print the notes instead")
	values := flags.String("values", "", "a file with values; - is standard input (default none)")
	flags.Func("set", "more values, as Helm's flag takes them", func(text string) error { return strvals.ParseInto(text, r.Set) })
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 1 {
		return fmt.Errorf("want one chart\n%s", usage)
	}
	text, err := readValues(*values, in)
	if err != nil {
		return err
	}
	return r.Render(out, flags.Arg(0), text)
}

// readValues reads the file with values, if there is one.
func readValues(path string, in io.Reader) ([]byte, error) {
	switch path {
	case "":
		return nil, nil
	case "-":
		return io.ReadAll(in)
	}
	return os.ReadFile(path)
}
