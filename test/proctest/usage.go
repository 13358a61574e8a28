package proctest

import (
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// CPU returns the user and system time that all threads of the process have used: its CPU
// clock, seen from outside (clock_getcpuclockid(3)).
func (p *Process) CPU() time.Duration {
	p.t.Helper()
	const schedulerClock = 2 // CPUCLOCK_SCHED
	var t unix.Timespec
	if err := unix.ClockGettime(int32(^p.PID()<<3|schedulerClock), &t); err != nil {
		p.t.Fatal(err)
	}
	return time.Duration(t.Nano())
}

// Bytes returns how many the process has read and written: files and connections.
func (p *Process) Bytes() (bytes int64) {
	p.t.Helper()
	for line := range strings.Lines(p.proc("io")) {
		var n int64
		if _, err := fmt.Sscanf(line[1:], "char: %d", &n); err == nil { // rchar, wchar
			bytes += n
		}
	}
	return bytes
}

// Memory is a size that /proc/PID/status names, such as VmHWM for the most
// that was ever resident, in bytes.
func (p *Process) Memory(field string) (bytes int64) {
	p.t.Helper()
	for line := range strings.Lines(p.proc("status")) {
		if _, err := fmt.Sscanf(line, field+": %d kB", &bytes); err == nil {
			return bytes << 10
		}
	}
	p.t.Fatalf("no %s in the process's status", field)
	return 0
}

// proc reads a file that the kernel has about the process.
func (p *Process) proc(name string) string {
	p.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", p.PID(), name))
	if err != nil {
		p.t.Fatal(err)
	}
	return string(text)
}
