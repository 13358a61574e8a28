package main

import (
	"runtime/debug"
	"strings"
)

// defaultImage is the name that "make image" gives to the image.
const defaultImage = "secretsync/syncer:0.1.0"

// version is the version of the build: the module's version, with the commit if the build
// recorded one.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	v := strings.Trim(info.Main.Version, "()")
	if v == "" {
		v = "devel"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && !strings.Contains(v, s.Value[:min(12, len(s.Value))]) {
			v += "+" + s.Value[:min(12, len(s.Value))]
		}
	}
	return v
}
