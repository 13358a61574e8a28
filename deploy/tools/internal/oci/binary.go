package oci

import (
	"debug/buildinfo"
	"debug/elf"
	"fmt"
	"os"
	"slices"
	"time"
)

// binary is a static executable for one platform, and what its build recorded.
type binary struct {
	platform  string // such as linux/arm64
	content   []byte
	revision  string    // the commit; empty when unknown
	committed time.Time // when that was made; zero when unknown
}

// machines are the platforms that an image can be made for.
var machines = map[string]elf.Machine{
	"linux/amd64": elf.EM_X86_64,
	"linux/arm64": elf.EM_AARCH64,
}

// openBinary reads an executable and checks that it runs on the platform, in
// an image that holds nothing else.
func openBinary(platform, path string) (*binary, error) {
	machine, ok := machines[platform]
	if !ok {
		return nil, fmt.Errorf("%s: not a platform that images are made for; use linux/amd64 or linux/arm64", platform)
	}
	file, err := elf.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%s: not a Linux executable: %w", path, err)
	}
	defer func() { _ = file.Close() }()
	if file.Machine != machine {
		return nil, fmt.Errorf("%s: an executable for %s, not for %s", path, file.Machine, platform)
	}
	if slices.ContainsFunc(file.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }) {
		return nil, fmt.Errorf("%s: linked dynamically, and the image has no libraries; build it with CGO_ENABLED=0", path)
	}
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return nil, err
	}
	b := &binary{platform: platform}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.revision = s.Value
		case "vcs.time":
			if b.committed, err = time.Parse(time.RFC3339, s.Value); err != nil {
				return nil, fmt.Errorf("%s: %w", path, err)
			}
		}
	}
	b.content, err = os.ReadFile(path)
	return b, err
}
