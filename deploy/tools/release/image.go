package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"

	"github.com/secretsync/syncer/deploy/tools/internal/charts"
	"github.com/secretsync/syncer/deploy/tools/internal/oci"
)

// repository is the default repository of the chart's image.
const repository = "secretsync/syncer"

// writeImage writes the image, the chart that names the image by its digest, and the
// manifests that this chart renders.
func (r *release) writeImage(work string) error {
	o := oci.Options{
		Out:     r.file("syncer_" + r.version + "_image.tar"),
		Name:    repository + ":" + r.version,
		Version: r.version,
		Licenses: []string{
			filepath.Join(r.source, "LICENSE"),
			r.file(noticeName),
		},
		Epoch: strconv.FormatInt(r.committed.Unix(), 10),
	}
	for _, b := range r.binaries {
		if b.system == "linux" {
			o.Binaries = append(o.Binaries, "linux/"+b.architecture+"="+b.path)
		}
	}
	var err error
	if r.images, err = oci.Write(io.Discard, o); err != nil {
		return err
	}
	fmt.Fprintf(r.log, "writing %s: %s@%s\n", filepath.Base(o.Out), repository, r.images[0])
	if err := r.writeImageBill(); err != nil {
		return err
	}
	dir := filepath.Join(work, "chart")
	if err := r.writeChart(dir, r.images[0].String()); err != nil {
		return err
	}
	return r.writeManifests(dir)
}

// imageDigest is the line of values.yaml that names the image by its digest.
var imageDigest = regexp.MustCompile(`(?m)^(  digest: )"" `)

// writeChart writes the chart into the folder, with the image's digest as its default,
// and its archive.
func (r *release) writeChart(dir, digest string) error {
	if err := os.CopyFS(dir, os.DirFS(r.chart(""))); err != nil {
		return err
	}
	path := filepath.Join(dir, "values.yaml")
	values, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if n := len(imageDigest.FindAll(values, -1)); n != 1 {
		return fmt.Errorf("values.yaml has %d lines for the image's digest, not one", n)
	}
	values = imageDigest.ReplaceAll(values, []byte(`${1}"`+digest+`" `))
	if err := os.WriteFile(path, values, 0o644); err != nil {
		return err
	}
	page, err := os.ReadFile(r.chart(readmeName))
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, readmeName), r.linkOut(page, "deploy/chart/syncer"), 0o644); err != nil {
		return err
	}
	path, err = charts.Archive(dir, r.out, r.committed)
	if err == nil {
		fmt.Fprintln(r.log, "writing", filepath.Base(path))
	}
	return err
}

// writeManifests writes what the chart renders with the values of the plain manifests.
func (r *release) writeManifests(chart string) error {
	values, err := os.ReadFile(filepath.Join(r.source, "deploy/kustomize/base/values.yaml"))
	if err != nil {
		return err
	}
	var out bytes.Buffer
	one := charts.Release{Name: "syncer", Namespace: "syncer", Revision: 1, KubeVersion: "v1.36.0"}
	if err := one.Render(&out, chart, values); err != nil {
		return err
	}
	return r.write("syncer_"+r.version+"_manifests.yaml", out.Bytes())
}
