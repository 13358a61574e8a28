// Command image writes Syncer's container image; package oci says how.
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/secretsync/syncer/deploy/tools/internal/oci"
)

func main() {
	o := oci.Options{Epoch: os.Getenv("SOURCE_DATE_EPOCH")}
	flag.StringVar(&o.Out, "out", "syncer.tar", "the archive to write")
	flag.StringVar(&o.Name, "name", "secretsync/syncer", "the image's name and tag")
	flag.StringVar(&o.Version, "version", "", "Syncer's version, such as 0.2.0")
	flag.Func("license", "a file for the image's folder /licenses; repeatable", func(path string) error {
		o.Licenses = append(o.Licenses, path)
		return nil
	})
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: image [flags] linux/amd64=FILE linux/arm64=FILE …")
		flag.PrintDefaults()
	}
	flag.Parse()
	o.Binaries = flag.Args()
	if _, err := oci.Write(os.Stdout, o); err != nil {
		fmt.Fprintf(os.Stderr, "image: %v\n", err)
		os.Exit(1)
	}
}
