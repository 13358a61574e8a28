package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/uuid"
)

// writeBills writes a bill of materials for each binary, in the format CycloneDX. It
// lists what the go command recorded in the binary that is shipped.
func (r *release) writeBills() error {
	for _, b := range r.binaries {
		content, err := os.ReadFile(b.path)
		if err != nil {
			return err
		}
		bill, err := r.bill(b, content)
		if err != nil {
			return err
		}
		if err := r.write(r.archiveName(b)+".cdx.json", bill); err != nil {
			return err
		}
	}
	return nil
}

// bill is the bill of materials of a binary. Its serial number follows from the
// binary, so that the same binary has the same bill.
func (r *release) bill(b binary, content []byte) ([]byte, error) {
	sum := sha256.Sum256(content)
	main := r.component(b.info.Main)
	main.Type = cdx.ComponentTypeApplication
	return r.encodeBill(main, sum[:], b.modules())
}

// writeImageBill writes the bill of materials of the image: the modules of its binaries,
// and its certificate authorities.
func (r *release) writeImageBill() error {
	digest := r.images[0]
	main := cdx.Component{
		BOMRef:  "pkg:oci/syncer@" + url.QueryEscape(digest.String()),
		Type:    cdx.ComponentTypeContainer,
		Name:    repository,
		Version: r.version,
	}
	main.PackageURL = main.BOMRef
	sum, err := hex.DecodeString(digest.Hex)
	if err != nil {
		return err
	}
	list := []debug.Module{r.authorities, r.binaries[0].info.Main}
	for _, b := range r.binaries {
		if b.system == "linux" {
			list = append(list, b.modules()...)
		}
	}
	bill, err := r.encodeBill(main, sum, list)
	if err != nil {
		return err
	}
	return r.write("syncer_"+r.version+"_image.cdx.json", bill)
}

// encodeBill lists what a component contains. The sum is the component's.
func (r *release) encodeBill(main cdx.Component, sum []byte, modules []debug.Module) ([]byte, error) {
	main.Hashes = &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(sum)}}
	bom := cdx.NewBOM()
	bom.SerialNumber = uuid.NewSHA1(uuid.NameSpaceOID, sum).URN()
	bom.Metadata = &cdx.Metadata{Timestamp: r.committed.Format(time.RFC3339), Component: &main}
	components := []cdx.Component{}
	uses := []string{}
	for _, m := range modules {
		c := r.component(m)
		if !slices.Contains(uses, c.BOMRef) {
			components = append(components, c)
			uses = append(uses, c.BOMRef)
		}
	}
	bom.Components = &components
	bom.Dependencies = &[]cdx.Dependency{{Ref: main.BOMRef, Dependencies: &uses}}
	var out bytes.Buffer
	err := cdx.NewBOMEncoder(&out, cdx.BOMFileFormatJSON).SetPretty(true).Encode(bom)
	return out.Bytes(), err
}

// component is a module: Syncer, or one that it contains.
func (r *release) component(m debug.Module) cdx.Component {
	c := cdx.Component{BOMRef: packageURL(m.Path, m.Version), Type: cdx.ComponentTypeLibrary, Name: m.Path, Version: m.Version}
	c.PackageURL = c.BOMRef
	if m.Sum != "" {
		// go.sum's sum is one of names and sums of files, and no hash that CycloneDX knows.
		c.Properties = &[]cdx.Property{{Name: "go.sum", Value: m.Sum}}
	}
	licenses := cdx.Licenses{}
	ids := r.licenses[m].ids
	if m.Path == r.binaries[0].info.Main.Path {
		ids = []string{"Apache-2.0"}
	}
	for _, id := range ids {
		licenses = append(licenses, cdx.LicenseChoice{License: &cdx.License{ID: id}})
	}
	c.Licenses = &licenses
	return c
}

// packageURL names a module as github.com/package-url/purl-spec does.
func packageURL(path, version string) string {
	return "pkg:golang/" + path + "@" + strings.TrimPrefix(version, "go")
}
