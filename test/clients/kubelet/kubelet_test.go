// Package kubelet reads files of the format kubernetes-env with the kubelet's own parser, of
// the version of Kubernetes in go.mod.
package kubelet

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation"
	envutil "k8s.io/kubernetes/pkg/kubelet/util/env"

	"github.com/secretsync/syncer/pkg/render"
	"github.com/secretsync/syncer/pkg/secret"
	"github.com/secretsync/syncer/pkg/targets"
)

// count is how many values are tried, and then how many names.
const count = 100_000

// fragments are what such files, and parsers of them, stumble over.
var fragments = []string{
	"'", "\"", "\r", "\n", "\r\n", "\n\n", "\\", "\\n", "$", "$(K)", "${K}", "`", "#", " #", "=", "K='v'", "\nK='v'", "export ", " ", "\t", "\v", "\f",
	"\x00", "\x01", "\x1b", "\x7f", "\u0085", "\u2028", "\ufeff", "\ufffd", "\xff", "\xc3", "\xed\xa0\x80", "é", "中", "🔑", "a", "B", "_", ".", "-", "7",
	"-----BEGIN KEY-----\nMIIB\n-----END KEY-----\n",
}

// TestKubeletReadsValues renders files of some values, and reads each variable back.
func TestKubeletReadsValues(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	r := rand.New(rand.NewPCG(1, 2))
	read, refused, bounds := 0, 0, 0
	for read+refused < count {
		aliases, values := names(r, 1+r.IntN(4)), map[string]string{}
		var fit []string
		for _, alias := range aliases {
			values[alias] = value(r, len(alias))
			err := write(path, []string{alias}, values)
			if err == nil {
				fit = append(fit, alias)
				continue
			}
			refused++
			checkRefusal(t, path, alias, values[alias], err)
		}
		if err := write(path, aliases, values); (err != nil) != (len(fit) < len(aliases)) || len(render.ValueErrors(err)) != len(aliases)-len(fit) {
			t.Fatalf("%d of %d values fit alone, and together: %v", len(fit), len(aliases), err)
		}
		if err := write(path, fit, values); err != nil {
			t.Fatal(err)
		}
		for _, alias := range fit {
			read++
			if len(values[alias]) > 65_000 {
				bounds++
			}
			if got, err := envutil.ParseEnv(path, alias); got != values[alias] || err != nil {
				t.Fatalf("the kubelet reads %.100q of %d bytes as %.100q of %d bytes: %v", values[alias], len(values[alias]), got, len(got), err)
			}
		}
	}
	t.Logf("%d values are read back, %d of them long; %d are refused", read, bounds, refused)
	if read < count/3 || refused < count/5 || bounds < count/1000 {
		t.Error("the values are of too few kinds")
	}
}

// TestKubeletReadsNames tries names that Kubernetes or Syncer may refuse.
func TestKubeletReadsNames(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	r := rand.New(rand.NewPCG(3, 4))
	read := 0
	for range count {
		alias := text(r, 4)
		if render.CheckAlias(targets.FormatKubernetesEnv, alias) != nil {
			continue
		}
		read++
		if faults := validation.IsRelaxedEnvVarName(alias); faults != nil {
			t.Fatalf("the API server refuses the name %q: %v", alias, faults)
		}
		if err := write(path, []string{alias}, map[string]string{alias: "v"}); err != nil {
			t.Fatal(err)
		}
		if got, err := envutil.ParseEnv(path, alias); got != "v" || err != nil {
			t.Fatalf("the kubelet reads the variable %q as %q: %v", alias, got, err)
		}
	}
	if read < count/200 {
		t.Errorf("only %d names were accepted", read)
	}
}

// checkRefusal checks that the kubelet does not read a refused value from the only form that
// it reads. It does read the empty value, NUL and invalid UTF-8, but no container gets them.
func checkRefusal(t *testing.T, path, alias, value string, err error) {
	t.Helper()
	if text := err.Error(); !strings.Contains(text, fmt.Sprintf("%q", alias)) || len(value) > 12 && strings.Contains(text, value) {
		t.Fatalf("the error must name the variable and not its value: %v", err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Fatal("a file with a refused value is written")
	}
	if value == "" || strings.Contains(value, "\x00") || !utf8.ValidString(value) {
		return
	}
	if err := os.WriteFile(path, []byte(alias+"='"+value+"'"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, parseErr := envutil.ParseEnv(path, alias); got == value && parseErr == nil {
		t.Fatalf("Syncer refuses %.100q of %d bytes, which the kubelet reads: %v", value, len(value), err)
	}
}

// write renders the aliases with their values into the file, or removes it.
func write(path string, aliases []string, values map[string]string) error {
	target := &targets.Target{Group: "g", Format: targets.FormatKubernetesEnv}
	var items []render.Item
	for _, alias := range aliases {
		target.Entries = append(target.Entries, targets.Entry{Alias: alias, Variable: "v"})
		items = append(items, render.Item{Alias: alias, Value: secret.New([]byte(values[alias]))})
	}
	_ = os.Remove(path)
	result, err := render.Render(target, "", items)
	if err != nil {
		return err
	}
	return os.WriteFile(path, result.Parts[""].Bytes(), 0o600)
}

// names makes n names that differ.
func names(r *rand.Rand, n int) (aliases []string) {
	for i := range n {
		aliases = append(aliases, fmt.Sprintf("%c%s%d", "K_.-"[r.IntN(4)], strings.Repeat("x", r.IntN(12)), n-i))
	}
	return aliases
}

// value makes a value for a variable whose name has some bytes.
func value(r *rand.Rand, name int) string {
	switch r.IntN(40) {
	case 0: // a line about as long as the parser's buffer, first, in the middle or last
		line := strings.Repeat("x", 65536-r.IntN(8)-[]int{0, 1, 2, name + 2, name + 3}[r.IntN(5)])
		return []string{"", "a\n", "\n"}[r.IntN(3)] + line + []string{"", "\nb", "\n"}[r.IntN(3)]
	case 1: // long, of short lines
		return strings.Repeat(strings.Repeat("y", 1+r.IntN(200))+"\n", 1+r.IntN(1000))
	case 2:
		return ""
	}
	return text(r, 8)
}

// text makes a short text of at most n pieces: any bytes, any letters, or fragments.
func text(r *rand.Rand, n int) string {
	var b strings.Builder
	kind := r.IntN(4)
	for range 1 + r.IntN(n) {
		switch kind {
		case 0:
			b.WriteByte(byte(r.UintN(256)))
		case 1:
			b.WriteByte(byte(' ' + r.UintN('~'-' '+1)))
		default:
			b.WriteString(fragments[r.IntN(len(fragments))])
		}
	}
	return b.String()
}
