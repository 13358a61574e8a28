package sources

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fsnotify/fsnotify"
	corev1 "k8s.io/api/core/v1"

	"github.com/secretsync/syncer/internal/safefile"
	"github.com/secretsync/syncer/pkg/kube"
	"github.com/secretsync/syncer/pkg/targets"
)

func TestBoundsOfTexts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	files := Templates{Dir: filepath.Dir(path)}
	inputs := Inputs{Paths: []string{path}}
	truncate := func(size int) {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, int64(size)); err != nil {
			t.Fatal(err)
		}
	}
	for less := -1; less <= 1; less++ {
		m := &corev1.ConfigMap{Data: map[string]string{"a": strings.Repeat("x", targets.MaxTemplate+less)}}
		if text := textOf(m, "a"); (text.size > 0) != (less > 0) || (len(text.text) > 0) != (less <= 0) || text.there != (less <= 0) {
			t.Errorf("in a configmap, the bound%+d: size %d, %d bytes", less, text.size, len(text.text))
		}
		truncate(targets.MaxTemplateText + less)
		text, err := files.Text(&targets.Target{Template: targets.Template{File: "file"}})
		if (err == nil) != (less <= 0) || err == nil && len(text) != targets.MaxTemplateText+less {
			t.Errorf("in a file, the bound%+d: %d bytes, %v", less, len(text), err)
		}
		truncate(1)
		inputs.Note()
		truncate(safefile.MaxInput + less)
		if !inputs.detectChange() {
			t.Errorf("an input of the bound%+d is not seen", less)
		}
		truncate(safefile.MaxInput + 2) // as if there was no file
		if changed := inputs.detectChange(); changed != (less <= 0) {
			t.Errorf("after the bound%+d, an input that is too large is a change: %t", less, changed)
		}
	}
	truncate(0)
	if _, err := files.Text(&targets.Target{Template: targets.Template{File: "file"}}); err == nil || !strings.Contains(err.Error(), "is empty") {
		t.Errorf("an empty file: %v", err)
	}
	if none, bytes := textOf(nil, "a"), textOf(&corev1.ConfigMap{BinaryData: map[string][]byte{"a": nil}}, "a"); !none.noMap || none.there || !bytes.bytes || bytes.there || bytes.noMap {
		t.Errorf("without a configmap %+v, in its binary data %+v", none, bytes)
	}
}

// slowLister takes an hour.
type slowLister struct{}

func (slowLister) Lists() bool { return true }

func (slowLister) Relist(ctx context.Context) ([]targets.Key, error) {
	select {
	case <-time.After(time.Hour):
	case <-ctx.Done():
	}
	return nil, ctx.Err()
}

func TestBoundsOfIntervals(t *testing.T) {
	for interval, want := range map[time.Duration]time.Duration{
		8 * time.Second: 4 * time.Second, 10*time.Second - 2: 5*time.Second - 1, 10 * time.Second: 5 * time.Second, 10*time.Second + 2: 5 * time.Second, time.Hour: 5 * time.Second,
	} {
		synctest.Test(t, func(t *testing.T) {
			l := &listing{Poll: &Poll{Lister: slowLister{}, Deadline: time.Minute}}
			began := time.Now()
			l.awaitList(t.Context(), interval)
			if took := time.Since(began); took != want {
				t.Errorf("each %v, a list is waited for %v, want %v", interval, took, want)
			}
			l.running.Wait()
			if took := time.Since(began); took != time.Minute {
				t.Errorf("the list ends after %v, want its deadline", took)
			}
		})
	}
	least, most := time.Hour, time.Duration(0)
	for range 2000 {
		d := next(1000 * time.Second)
		least, most = min(least, d), max(most, d)
	}
	if least < 900*time.Second || least > 902*time.Second || most > 1000*time.Second || most < 998*time.Second {
		t.Errorf("ticks are %v to %v apart", least, most)
	}
}

type noUsers struct {
	FileUsers
	files []string
}

func (n noUsers) TemplateFiles() []string { return n.files }

func TestWatchesAreOfWhatMayBeUsed(t *testing.T) {
	for _, files := range [][]string{nil, {"file"}} {
		for _, client := range []*kube.Client{nil, {}} {
			texts := &TemplateTexts{files: &Templates{Users: noUsers{files: files}}, configMaps: &ConfigMaps{Client: client}}
			want := len(files)
			if client != nil {
				want++
			}
			if got := texts.Watches(); len(got) != want {
				t.Errorf("%d watches for the files %q, with a cluster: %t", len(got), files, client != nil)
			}
		}
	}
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := add(watcher, []string{filepath.Join(dir, "none"), dir}); err != nil || !slices.Equal(watcher.WatchList(), []string{dir}) {
		t.Errorf("a folder that may come later: %v; watched %q", err, watcher.WatchList())
	}
	_ = watcher.Close()
	if err := add(watcher, []string{dir}); err == nil || !strings.Contains(err.Error(), "watching "+dir) {
		t.Errorf("after the end of the watcher: %v", err)
	}
}
