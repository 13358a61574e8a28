package proctest

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// CPU returns the user and system time that the process has used.
func (p *Process) CPU() time.Duration {
	p.t.Helper()
	text := p.proc("stat")
	fields := strings.Fields(text[strings.LastIndexByte(text, ')'):])
	var ticks int64
	for _, field := range fields[12:14] { // user and system, in hundredths of a second
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			p.t.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
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
