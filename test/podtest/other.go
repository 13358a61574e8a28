//go:build !linux

// Package podtest makes what a Pod is to its processes, on Linux only.
package podtest

// Main does nothing.
func Main() {}
