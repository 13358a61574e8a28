package inject

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/big"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/secretsync/syncer/internal/safefile"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The script of these tests: the parts of the genuine ones are nobody's to copy.
const before, after = "#!/bin/sh\ncat <<EOF\n", "\nEOF\nexit 0\n"

func testScripts() []Script {
	return []Script{{"other", "other"}, {digest([]byte(before)), digest([]byte(after))}}
}

// workload makes a key, in PKIX form, and the PEM of a certificate for it.
func workload(t testing.TB, uri string) (key []byte, text string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	key, err = x509.MarshalPKIXPublicKey(private.Public())
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	if u, err := url.Parse(uri); err == nil && uri != "" {
		template.URIs = []*url.URL{u}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	return key, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

const pod = "spiffe://cluster.local/namespace/shop/podname/web-0"

// feed is standard input that a test writes to.
func feed(t *testing.T) (in, out *os.File) {
	t.Helper()
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.Close(); _ = out.Close() })
	return in, out
}

func TestReceiverStoresWhatIsAwaited(t *testing.T) {
	for name, c := range map[string]struct {
		pieces []string
		end    bool // the input ends
	}{
		"at once":        {[]string{"%s"}, true},
		"without an end": {[]string{"%s"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "client.pem")
			key, text := workload(t, pod)
			if err := safefile.Replace(path+awaited, fingerprint(key)); err != nil {
				t.Fatal(err)
			}
			in, out := feed(t)
			io.WriteString(out, before+text+after)
			if c.end {
				_ = out.Close()
			}
			status, err := Receiver{Path: path, Scripts: testScripts(), Stdin: in}.Receive()
			got, _ := os.ReadFile(path)
			if status != 0 || err != nil || string(got) != text {
				t.Errorf("status %d, %v, file %q", status, err, got)
			}
			wantAlone(t, path, path+awaited)
		})
	}
}

// wantAlone wants nothing but these files in their folder.
func wantAlone(t *testing.T, paths ...string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(paths[0]))
	if err != nil || len(entries) != len(paths) {
		t.Errorf("the folder has %v (%v), want %v", entries, err, paths)
	}
}

func TestReceiverTakesPieces(t *testing.T) {
	path := filepath.Join(t.TempDir(), "client.pem")
	key, text := workload(t, pod)
	if err := safefile.Replace(path+awaited, fingerprint(key)); err != nil {
		t.Fatal(err)
	}
	in, out := feed(t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, b := range []byte(before + text + after) {
			_, _ = out.Write([]byte{b})
		}
	}()
	status, err := Receiver{Path: path, Scripts: testScripts(), Stdin: in}.Receive()
	<-done
	if status != StatusStored {
		t.Errorf("status %d, %v", status, err)
	}
}

func TestReceiverRefuses(t *testing.T) {
	key, text := workload(t, pod)
	_, foreign := workload(t, pod)
	_, plain := workload(t, "")
	body := strings.TrimSuffix(strings.TrimPrefix(text, "-----BEGIN CERTIFICATE-----\n"), "-----END CERTIFICATE-----\n")
	for name, input := range map[string]string{
		"nothing":             "",
		"a command":           "id\n",
		"no certificate":      before + after,
		"another beginning":   "#!/bin/sh\nid\n" + text + after,
		"another end":         before + text + "\nEOF\nid\n",
		"more":                before + text + after + "id\n",
		"two certificates":    before + text + text + after,
		"an expansion":        before + strings.Replace(text, "M", "$(id)", 1) + after,
		"a header":            before + strings.Replace(text, "\n", "\na: b\n\n", 1) + after,
		"one line":            before + "-----BEGIN CERTIFICATE-----\n" + strings.ReplaceAll(body, "\n", "") + "\n-----END CERTIFICATE-----\n" + after,
		"Windows' line ends":  strings.ReplaceAll(before+text+after, "\n", "\r\n"),
		"a key":               before + strings.ReplaceAll(text, "CERTIFICATE", "PRIVATE KEY") + after,
		"another key":         before + foreign + after,
		"not of a workload":   before + plain + after,
		"not even X.509":      before + string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("hello")})) + after,
		"more than it may be": before + text + strings.Repeat("x", maxText),
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "client.pem")
			if err := safefile.Replace(path+awaited, fingerprint(key)); err != nil {
				t.Fatal(err)
			}
			in, out := feed(t)
			io.WriteString(out, input)
			_ = out.Close()
			status, err := Receiver{Path: path, Scripts: testScripts(), Stdin: in}.Receive()
			if status != 126 || err == nil { // as of a shell that cannot be run
				t.Errorf("status %d, %v", status, err)
			}
			wantAlone(t, path+awaited)
		})
	}
}

func TestReceiverIsNoShell(t *testing.T) {
	path := filepath.Join(t.TempDir(), "client.pem")
	key, text := workload(t, pod)
	whole := func() *os.File {
		in, out := feed(t)
		io.WriteString(out, before+text+after)
		_ = out.Close()
		return in
	}
	device, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer device.Close()
	closed, _ := feed(t)
	_ = closed.Close()
	for name, r := range map[string]Receiver{
		"nothing awaited": {Stdin: whole()},
		"an argument":     {Stdin: whole(), Args: []string{"-c"}},
		"a device":        {Stdin: device},
		"closed":          {Stdin: closed},
	} {
		r.Path, r.Scripts = path, testScripts()
		if name != "nothing awaited" {
			if err := safefile.Replace(path+awaited, fingerprint(key)); err != nil {
				t.Fatal(err)
			}
		} else {
			_ = os.Remove(path + awaited)
		}
		if status, err := r.Receive(); status != StatusRefused || err == nil {
			t.Errorf("%s: status %d, %v", name, status, err)
		}
		if _, err := os.Stat(path); err == nil {
			t.Errorf("%s: stored", name)
		}
	}
}

func TestReceiverBounds(t *testing.T) {
	key, text := workload(t, pod)
	for less := -1; less <= 1; less++ {
		path := filepath.Join(t.TempDir(), "client.pem")
		if err := safefile.Replace(path+awaited, fingerprint(key)); err != nil {
			t.Fatal(err)
		}
		padded := strings.Repeat("x", maxText+less-len(before+text))
		in, out := feed(t)
		io.WriteString(out, before+text+padded)
		_ = out.Close()
		status, err := Receiver{Path: path, Scripts: []Script{{digest([]byte(before)), digest([]byte(padded))}}, Stdin: in}.Receive()
		if (status == StatusStored) != (less <= 0) {
			t.Errorf("a script of the bound%+d: status %d, %v", less, status, err)
		}
	}
}

func TestReceiverDoesNotWaitForEver(t *testing.T) {
	t.Parallel()
	key, text := workload(t, pod)
	path := filepath.Join(t.TempDir(), "client.pem")
	if err := safefile.Replace(path+awaited, fingerprint(key)); err != nil {
		t.Fatal(err)
	}
	in, out := feed(t)
	io.WriteString(out, before+text+after[:3])
	status, err := Receiver{Path: path, Scripts: testScripts(), Stdin: in}.Receive()
	if status != 1 || !errors.Is(err, errIncomplete) {
		t.Errorf("status %d, %v", status, err)
	}
	wantAlone(t, path+awaited)
}

func TestReceiverWithoutAFolder(t *testing.T) {
	key, text := workload(t, pod)
	dir := t.TempDir()
	path := filepath.Join(dir, "client.pem")
	if err := safefile.Replace(path+awaited, fingerprint(key)); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path, 0o700); err != nil { // in the way of the certificate
		t.Fatal(err)
	}
	in, out := feed(t)
	io.WriteString(out, before+text+after)
	if status, err := (Receiver{Path: path, Scripts: testScripts(), Stdin: in}).Receive(); status != StatusFailed || err == nil {
		t.Errorf("status %d, %v", status, err)
	}
	wantAlone(t, path, path+awaited)
}

func FuzzParse(f *testing.F) {
	_, text := workload(f, pod)
	f.Add([]byte(before + text + after))
	f.Add([]byte(before + after))
	f.Add([]byte(text + text))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := parse(data, testScripts())
		if err != nil {
			return
		}
		// What is accepted is the script around one PEM block, and not a byte
		// that a shell would have done more with.
		if string(data) != before+string(c.pem)+after || bytes.ContainsAny(c.pem, "$`\\") {
			t.Errorf("accepted %q", data)
		}
		if block, rest := pem.Decode(c.pem); block == nil || len(rest) > 0 || len(c.key) == 0 {
			t.Errorf("accepted %q", data)
		}
	})
}

// ---- the Inbox

func TestInbox(t *testing.T) {
	key, text := workload(t, pod)
	_, foreign := workload(t, pod)
	path := filepath.Join(t.TempDir(), "client.pem")
	put := func(text string) {
		if err := safefile.Replace(path, []byte(text)); err != nil {
			t.Error(err)
		}
	}
	put(foreign) // left behind by a try before
	inbox := NewInbox(path)
	c, err := inbox.Await(t.Context(), key, time.Minute, func(context.Context) error {
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the old file is still there: %v", err)
		}
		if got, err := os.ReadFile(path + awaited); err != nil || !bytes.Equal(got, fingerprint(key)) {
			t.Errorf("awaited is %q, %v", got, err)
		}
		put(foreign) // late, of a try before
		time.AfterFunc(3*look, func() { put(text) })
		return nil
	})
	if err != nil || !bytes.Equal(c.RawSubjectPublicKeyInfo, key) {
		t.Fatalf("got %v", err)
	}
	if entries, _ := os.ReadDir(filepath.Dir(path)); len(entries) > 0 {
		t.Errorf("left behind: %v", entries)
	}
}

func TestInboxGivesUp(t *testing.T) {
	key, _ := workload(t, pod)
	_, foreign := workload(t, pod)
	for name, c := range map[string]struct{ content, want string }{
		"nothing":     {"", "no client certificate within 200ms: "},
		"foreign":     {foreign, "for another key"},
		"no PEM":      {"hello", "holds no PEM"},
		"not X.509":   {"-----BEGIN CERTIFICATE-----\naGVsbG8=\n-----END CERTIFICATE-----\n", "holds no certificate"},
		"far too big": {strings.Repeat("x", maxText+1), "it has more than"},
	} {
		path := filepath.Join(t.TempDir(), "client.pem")
		_, err := NewInbox(path).Await(t.Context(), key, 200*time.Millisecond, func(context.Context) error {
			if c.content == "" {
				return nil
			}
			return os.WriteFile(path, []byte(c.content), 0o600)
		})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	path := filepath.Join(t.TempDir(), "client.pem")
	_, err := NewInbox(path).Await(t.Context(), key, 200*time.Millisecond, func(context.Context) error { return unix.Mkfifo(path, 0o600) })
	if !errors.Is(err, safefile.ErrNotRegular) {
		t.Errorf("a FIFO: %v", err)
	}
	path = filepath.Join(t.TempDir(), "nowhere", "client.pem")
	_, err = NewInbox(path).Await(t.Context(), key, time.Minute, func(context.Context) error { return errors.New("asked all the same") })
	if err == nil || !strings.Contains(err.Error(), "mount an emptyDir") {
		t.Errorf("without a folder: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	_, err = NewInbox(filepath.Join(t.TempDir(), "c")).Await(ctx, key, time.Minute, func(context.Context) error { cancel(); return nil })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("given up: %v", err)
	}
	refused := errors.New("refused")
	if _, err = NewInbox(filepath.Join(t.TempDir(), "c")).Await(t.Context(), key, time.Minute, func(context.Context) error { return refused }); !errors.Is(err, refused) {
		t.Errorf("refused: %v", err)
	}
}

// Two identities of a process do not take each other's certificate away.
func TestInboxAwaitsOneAtATime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "client.pem")
	inbox := NewInbox(path)
	errs := make(chan error)
	const n = 4
	for range n {
		key, text := workload(t, pod)
		go func() {
			_, err := inbox.Await(t.Context(), key, time.Minute, func(context.Context) error {
				got, err := os.ReadFile(path + awaited)
				if err != nil || !bytes.Equal(got, fingerprint(key)) {
					return fmt.Errorf("awaited is another: %v", err)
				}
				return safefile.Replace(path, []byte(text))
			})
			errs <- err
		}()
	}
	for range n {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}

func TestReceiverSaysWhatCannotBeRead(t *testing.T) {
	key, _ := workload(t, pod)
	dir := t.TempDir()
	path := filepath.Join(dir, "client.pem")
	if err := safefile.Replace(path+awaited, fingerprint(key)); err != nil {
		t.Fatal(err)
	}
	in, err := os.Open(dir) // a folder
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if status, err := (Receiver{Path: path, Scripts: testScripts(), Stdin: in}).Receive(); status == 0 || !errors.Is(err, unix.EISDIR) {
		t.Errorf("status %d, %v", status, err)
	}
	wantAlone(t, path+awaited)
}
