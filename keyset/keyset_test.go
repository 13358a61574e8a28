package keyset_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/secretsync/syncer/keyset"
)

// write makes a plain folder of these files, and of no others.
func write(t *testing.T, folder string, files map[string]string) {
	t.Helper()
	old, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range old {
		if err := os.Remove(filepath.Join(folder, entry.Name())); err != nil {
			t.Fatal(err)
		}
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// swap makes a revision of the folder current as the kubelet does: new files,
// then the link, then the old ones away.
func swap(folder, revision string, files map[string]string) error {
	if err := os.Mkdir(filepath.Join(folder, revision), 0o700); err != nil {
		return err
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(folder, revision, name), []byte(content), 0o600); err != nil {
			return err
		}
	}
	link := filepath.Join(folder, "..data")
	old, _ := os.Readlink(link)
	if err := os.Symlink(revision, link+"_tmp"); err != nil {
		return err
	}
	if err := os.Rename(link+"_tmp", link); err != nil {
		return err
	}
	if old == "" {
		return nil
	}
	return os.RemoveAll(filepath.Join(folder, old))
}

func open(t *testing.T, folder string) *keyset.Set {
	t.Helper()
	keys, err := keyset.Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

func ids(keys *keyset.Set) string {
	var all []string
	for _, key := range keys.All() {
		if key.ID == keys.Primary().ID {
			all = append(all, "*"+key.ID)
		} else {
			all = append(all, key.ID)
		}
	}
	return strings.Join(all, " ")
}

func TestOpenReadsTheNamesOfTheConvention(t *testing.T) {
	for name, test := range map[string]struct {
		files map[string]string
		path  string // below the folder
		want  string
	}{
		"one key":         {map[string]string{"r1.key.primary": "a"}, "", "*r1"},
		"two keys":        {map[string]string{"r1.key": "a", "r2.key.primary": "b"}, "", "r1 *r2"},
		"several parts":   {map[string]string{"r1.private": "a", "r1.public": "b", "r2.private.primary": "c", "r2.public.primary": "d"}, "", "r1 *r2"},
		"one part marked": {map[string]string{"r1.private.primary": "a", "r1.public": "b"}, "", "*r1"},
		"parts with dots": {map[string]string{"r1.tls.crt.primary": "a", "r1.tls.key.primary": "b"}, "", "*r1"},
		"other names":     {map[string]string{"r1.key.primary": "a", "README": "", ".hidden.key": "x", "..2026.key": "x"}, "", "*r1"},
		"prefix":          {map[string]string{"jwt-r1.key.primary": "a", "jwt-r2.key": "b", "db-r3.key.primary": "c"}, "jwt-*", "*r1 r2"},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			write(t, folder, test.files)
			if got := ids(open(t, filepath.Join(folder, test.path))); got != test.want {
				t.Errorf("keys %q, want %q", got, test.want)
			}
		})
	}
}

func TestOpenRefusesAFolderWithoutOnePrimary(t *testing.T) {
	for name, test := range map[string]struct {
		files map[string]string
		want  string
	}{
		"empty":         {nil, "0 keys are marked .primary"},
		"no primary":    {map[string]string{"r1.key": "a"}, "0 keys are marked .primary"},
		"two primaries": {map[string]string{"r1.key.primary": "a", "r2.key.primary": "b"}, `2 keys are marked .primary, not one: ["r1" "r2"]`},
		"a part twice":  {map[string]string{"r1.key.primary": "a", "r1.key": "b"}, "part key of key r1 is there twice"},
		"no part":       {map[string]string{"r1.primary": "a"}, "file r1.primary is not named <id>.<part>"},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			write(t, folder, test.files)
			_, err := keyset.Open(folder)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
	if _, err := keyset.Open(filepath.Join(t.TempDir(), "none")); !os.IsNotExist(err) && (err == nil || !strings.Contains(err.Error(), "no such file")) {
		t.Errorf("a missing folder: %v", err)
	}
}

// TestBounds of a folder, its files and the times between two checks.
func TestBounds(t *testing.T) {
	for less := -1; less <= 1; less++ {
		folder := t.TempDir()
		write(t, folder, map[string]string{"r1.key.primary": strings.Repeat("x", 1<<20+less)})
		if _, err := keyset.Open(folder); (err == nil) != (less <= 0) || err != nil && !strings.Contains(err.Error(), "file r1.key.primary has more than 1048576 bytes") {
			t.Errorf("a file of the bound%+d: %v", less, err)
		}
		many := map[string]string{"r1.key.primary": "a"}
		for i := range 999 + less {
			many[fmt.Sprintf("f%d.key", i)] = "x"
		}
		write(t, folder, many)
		if _, err := keyset.Open(folder); (err == nil) != (less <= 0) || err != nil && !strings.Contains(err.Error(), "more than 1000 files") {
			t.Errorf("files of the bound%+d: %v", less, err)
		}
	}
	for less := time.Duration(-1); less <= 1; less++ {
		synctest.Test(t, func(t *testing.T) {
			folder := t.TempDir()
			write(t, folder, map[string]string{"r1.key.primary": "a"})
			keys := open(t, folder)
			write(t, folder, map[string]string{"r2.key.primary": "b"})
			time.Sleep(time.Second + less)
			if followed := keys.Primary().ID == "r2"; followed != (less >= 0) {
				t.Errorf("a check after the bound%+d: %t", less, followed)
			}
		})
	}
}

func TestWhatIsNoFileStopsNothing(t *testing.T) {
	folder := t.TempDir()
	write(t, folder, map[string]string{"r1.key.primary": "a"})
	if err := syscall.Mkfifo(filepath.Join(folder, "r2.key.primary"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("nowhere", filepath.Join(folder, "r3.key")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(folder, "r4.key"), 0o700); err != nil {
		t.Fatal(err)
	}
	if got := ids(open(t, folder)); got != "*r1" {
		t.Errorf("keys %q", got)
	}
}

func TestASetFollowsARotation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		folder := t.TempDir()
		write(t, folder, map[string]string{"r1.key.primary": "a"})
		keys := open(t, folder)
		for _, step := range []struct {
			files map[string]string
			want  string
		}{
			{map[string]string{"r1.key.primary": "a", "r2.key": "b"}, "*r1 r2"},
			{map[string]string{"r1.key": "a", "r2.key.primary": "b"}, "r1 *r2"},
			{map[string]string{"r2.key.primary": "b"}, "*r2"},
			{map[string]string{"r2.key.primary": "other bytes"}, "*r2"},
		} {
			write(t, folder, step.files)
			time.Sleep(time.Second)
			if got := ids(keys); got != step.want {
				t.Errorf("keys %q, want %q", got, step.want)
			}
		}
		if got := string(keys.Primary().Part("key")); got != "other bytes" {
			t.Errorf("part %q", got)
		}
		if got := keys.Primary().Part("none"); got != nil {
			t.Errorf("a missing part is %q", got)
		}
	})
}

func TestTheLastGoodKeysStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		folder := filepath.Join(t.TempDir(), "keys")
		good := map[string]string{"r1.key.primary": "a", "r2.key": "b"}
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, folder, good)
		keys := open(t, folder)
		if err := keys.Err(); err != nil {
			t.Fatal(err)
		}
		for name, breakIt := range map[string]func(){
			"two primaries": func() { write(t, folder, map[string]string{"r1.key.primary": "a", "r2.key.primary": "b"}) },
			"emptied":       func() { write(t, folder, nil) },
			"gone":          func() { os.RemoveAll(folder) },
		} {
			breakIt()
			time.Sleep(time.Second)
			if err := keys.Err(); err == nil || !strings.Contains(err.Error(), folder) {
				t.Errorf("%s: error %v", name, err)
			}
			if got := ids(keys); got != "*r1 r2" {
				t.Errorf("%s: keys %q", name, got)
			}
			os.Mkdir(folder, 0o700)
			write(t, folder, good)
			time.Sleep(time.Second)
			if err := keys.Err(); err != nil {
				t.Errorf("%s, mended: %v", name, err)
			}
		}
	})
}

func TestAnUnknownIDIsReadAtOnceButOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		folder := t.TempDir()
		write(t, folder, map[string]string{"r1.key.primary": "a"})
		keys := open(t, folder)
		write(t, folder, map[string]string{"r1.key.primary": "a", "r2.key": "b"})
		if _, ok := keys.ByID("r2"); !ok {
			t.Error("a new key was not found at once")
		}
		write(t, folder, map[string]string{"r1.key.primary": "a", "r2.key": "b", "r3.key": "c"})
		if _, ok := keys.ByID("r3"); ok {
			t.Error("the folder was read twice within a second")
		}
		time.Sleep(time.Second - 1)
		if _, ok := keys.ByID("r3"); ok {
			t.Error("the folder was read twice within a second")
		}
		time.Sleep(time.Nanosecond)
		if _, ok := keys.ByID("r3"); !ok {
			t.Error("a new key was not found a second later")
		}
	})
}

func TestChangesYieldsEachChangeAndEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		folder := t.TempDir()
		write(t, folder, map[string]string{"r1.key.primary": "a"})
		keys := open(t, folder)
		var seen []string
		var done sync.WaitGroup
		changes := keys.Changes(t.Context())
		done.Go(func() {
			for range changes {
				seen = append(seen, ids(keys))
				if len(seen) == 2 {
					break
				}
			}
		})
		time.Sleep(time.Second / 2) // files are written one by one, so never at a tick
		for _, files := range []map[string]string{
			{"r1.key.primary": "a"}, // rewritten with what it had
			{"r1.key.primary": "a", "r2.key": "b"},
			{"r1.key.primary": "a", "r2.key.primary": "b"}, // not good
			{"r1.key": "a", "r2.key.primary": "b"},
		} {
			write(t, folder, files)
			time.Sleep(3 * time.Second)
		}
		done.Wait()
		if want := []string{"*r1 r2", "r1 *r2"}; !slices.Equal(seen, want) {
			t.Errorf("saw %q, want %q", seen, want)
		}
	})
}

// A reader never sees keys of two revisions, however often they are exchanged.
func TestNoSetIsTorn(t *testing.T) {
	folder := t.TempDir()
	revision := func(n int) map[string]string {
		files := make(map[string]string)
		for i := range 5 {
			name := fmt.Sprintf("k%d.key", i)
			if i == n%5 {
				name += ".primary"
			}
			files[name] = fmt.Sprint(n)
		}
		return files
	}
	if err := swap(folder, "..0", revision(0)); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var writer sync.WaitGroup
	writer.Go(func() {
		for n := 1; ; n++ {
			select {
			case <-stop:
				return
			default:
			}
			if err := swap(folder, fmt.Sprintf("..%d", n), revision(n)); err != nil {
				t.Error(err)
				return
			}
		}
	})
	defer writer.Wait()
	defer close(stop)
	read, revisions := 0, make(map[string]bool)
	for try := 0; try < 200_000 && len(revisions) < 500; try++ {
		keys, err := keyset.Open(folder)
		if err != nil {
			if !strings.Contains(err.Error(), "changed each time") {
				t.Fatal(err)
			}
			continue
		}
		read++
		all := keys.All()
		n := string(all[0].Part("key"))
		revisions[n] = true
		for _, key := range all {
			if string(key.Part("key")) != n {
				t.Fatalf("key %s is of revision %s, key %s of %s", all[0].ID, n, key.ID, key.Part("key"))
			}
		}
		if len(all) != 5 || !strings.HasSuffix(keys.Primary().ID, fmt.Sprint(atoi(n)%5)) {
			t.Fatalf("revision %s has %d keys, primary %s", n, len(all), keys.Primary().ID)
		}
	}
	if len(revisions) < 500 {
		t.Errorf("%d reads saw only %d revisions", read, len(revisions))
	}
}

func atoi(text string) int {
	n := 0
	fmt.Sscan(text, &n)
	return n
}

func TestSealAndOpenThroughARotation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		folder := t.TempDir()
		one, two := strings.Repeat("1", 32), strings.Repeat("2", 32)
		write(t, folder, map[string]string{"r1.key.primary": one})
		keys := open(t, folder)
		plain, extra := []byte("4111 1111 1111 1111"), []byte("customers/7/card")
		old, err := keys.Seal(plain, extra)
		if err != nil {
			t.Fatal(err)
		}
		if parts := strings.Split(old, ":"); len(parts) != 3 || parts[0] != "r1" {
			t.Errorf("sealed text %q", old)
		}
		if again, _ := keys.Seal(plain, extra); again == old {
			t.Error("two texts have one iv")
		}
		write(t, folder, map[string]string{"r1.key": one, "r2.key.primary": two})
		time.Sleep(time.Second)
		if sealed, err := keys.Seal(plain, extra); err != nil || !strings.HasPrefix(sealed, "r2:") {
			t.Errorf("sealed under the old key: %q, %v", sealed, err)
		}
		if got, err := keys.Open(old, extra); err != nil || !bytes.Equal(got, plain) {
			t.Errorf("opened %q, %v", got, err)
		}
		write(t, folder, map[string]string{"r2.key.primary": two})
		time.Sleep(time.Second)
		if _, err := keys.Open(old, extra); err == nil || !strings.Contains(err.Error(), `no key "r1"`) {
			t.Errorf("opened under a retired key: %v", err)
		}
	})
}

func TestOpenRefusesWhatWasAltered(t *testing.T) {
	folder := t.TempDir()
	write(t, folder, map[string]string{
		"r1.key.primary": strings.Repeat("1", 32), "r2.key": strings.Repeat("1", 32), "r3.key": "short",
	})
	keys := open(t, folder)
	sealed, err := keys.Seal([]byte("plain"), []byte("here"))
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(sealed, ":")
	for name, text := range map[string]string{
		"other key with the same bytes": "r2:" + parts[1] + ":" + parts[2],
		"key of another length":         "r3:" + parts[1] + ":" + parts[2],
		"iv":                            parts[0] + ":AAAAAAAAAAAAAAAA:" + parts[2],
		"short iv":                      parts[0] + ":AAAA:" + parts[2],
		"ciphertext":                    parts[0] + ":" + parts[1] + ":AAAA" + parts[2],
		"no ciphertext":                 parts[0] + ":" + parts[1] + ":",
		"no base64":                     parts[0] + ":" + parts[1] + ":%",
		"no form":                       "plain",
		"empty":                         "",
	} {
		if got, err := keys.Open(text, []byte("here")); err == nil {
			t.Errorf("%s: opened %q", name, got)
		}
	}
	if _, err := keys.Open(sealed, []byte("there")); err == nil {
		t.Error("opened with another extra")
	}
	write(t, folder, map[string]string{"r1.key.primary": "short"})
	if _, err := open(t, folder).Seal(nil, nil); err == nil || !strings.Contains(err.Error(), "32 bytes") {
		t.Errorf("sealed under a short key: %v", err)
	}
}

func TestHandlerNamesKeysAndTheirUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		folder := t.TempDir()
		write(t, folder, map[string]string{"r1.key": "canary-1", "r2.key.primary": "canary-2", "r3.key": "canary-3"})
		keys := open(t, folder)
		keys.ByID("r1")
		time.Sleep(90 * time.Second)
		keys.Primary()
		write(t, folder, map[string]string{"r1.key": "canary-1", "r2.key.primary": "canary-2", "r4.key": "canary-4"})
		time.Sleep(time.Second)
		reply := httptest.NewRecorder()
		keys.Handler().ServeHTTP(reply, httptest.NewRequest(http.MethodGet, "/keys", nil))
		if strings.Contains(reply.Body.String(), "canary") {
			t.Error("a key is in the answer")
		}
		var got struct {
			IDs     []string
			Primary string
			Used    map[string]int
		}
		if err := json.Unmarshal(reply.Body.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got.IDs, []string{"r1", "r2", "r4"}) || got.Primary != "r2" ||
			!maps.Equal(got.Used, map[string]int{"r1": 91, "r2": 1}) {
			t.Errorf("answer %+v", got)
		}
		reply = httptest.NewRecorder()
		keys.Handler().ServeHTTP(reply, httptest.NewRequest(http.MethodPost, "/keys", nil))
		if reply.Code != http.StatusMethodNotAllowed {
			t.Errorf("POST: %d", reply.Code)
		}
	})
}

func FuzzOpen(f *testing.F) {
	folder := f.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "r1.key.primary"), []byte(strings.Repeat("1", 32)), 0o600); err != nil {
		f.Fatal(err)
	}
	keys, err := keyset.Open(folder)
	if err != nil {
		f.Fatal(err)
	}
	sealed, err := keys.Seal([]byte("plain"), nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(sealed)
	f.Add("r1::")
	f.Fuzz(func(t *testing.T, text string) {
		if _, err := keys.Open(text, nil); err == nil && text != sealed {
			t.Errorf("opened %q", text)
		}
	})
}
