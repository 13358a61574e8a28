package sinks

import "syscall"

// changeTime returns the time when a file's content or attributes last changed.
// Unlike the modification time, no program can set it.
func changeTime(s *syscall.Stat_t) int64 { return s.Ctimespec.Nano() }
