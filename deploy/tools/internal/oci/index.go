package oci

import (
	"fmt"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// imageIndex is the image of all platforms.
func imageIndex(binaries []*binary, licenses []tarEntry, version string, created time.Time) (v1.ImageIndex, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, b := range binaries {
		one, err := image(b, licenses, version, created)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", b.platform, err)
		}
		system, architecture, _ := strings.Cut(b.platform, "/")
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: plain{one},
			Descriptor: v1.Descriptor{
				Platform: &v1.Platform{OS: system, Architecture: architecture},
			},
		})
	}
	return index, nil
}

// plain is an image whose descriptor has no artifactType. skopeo drops that field, and the
// copy would have another digest than the one that the chart and the signature name.
type plain struct{ v1.Image }

// ArtifactType returns "": then the library omits the field.
func (plain) ArtifactType() (string, error) { return "", nil }

// image is that of one platform.
func image(b *binary, licenses []tarEntry, version string, created time.Time) (v1.Image, error) {
	content, err := layer(b, licenses, created)
	if err != nil {
		return nil, err
	}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	system, architecture, _ := strings.Cut(b.platform, "/")
	base, err = mutate.ConfigFile(base, &v1.ConfigFile{
		OS: system, Architecture: architecture,
		Created: v1.Time{Time: created},
		RootFS:  v1.RootFS{Type: "layers"}, // the only one that there is, and required
		Config:  runtimeConfig(b, version, created),
	})
	if err != nil {
		return nil, err
	}
	return mutate.Append(base, mutate.Addendum{
		Layer:     content,
		History:   v1.History{Created: v1.Time{Time: created}, CreatedBy: "deploy/tools/image"},
		MediaType: types.OCILayer,
	})
}

// runtimeConfig is how a container of the image is started.
func runtimeConfig(b *binary, version string, created time.Time) v1.Config {
	labels := map[string]string{
		"org.opencontainers.image.title":       "Syncer",
		"org.opencontainers.image.description": "Brings secrets from Conjur to applications on Kubernetes and keeps them fresh",
		"org.opencontainers.image.licenses":    "Apache-2.0",
		"org.opencontainers.image.version":     version,
		"org.opencontainers.image.created":     created.Format(time.RFC3339),
	}
	if b.revision != "" {
		labels["org.opencontainers.image.revision"] = b.revision
	}
	return v1.Config{
		// A number, so that the kubelet can tell that it is not root.
		User:         fmt.Sprintf("%d:%[1]d", uid),
		Entrypoint:   []string{"/syncer"},
		Env:          []string{"PATH=/usr/local/bin:/bin"},
		WorkingDir:   "/",
		ExposedPorts: map[string]struct{}{"8080/tcp": {}},
		Labels:       labels,
	}
}
