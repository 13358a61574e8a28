package sinks

import (
	"errors"
	"io/fs"
)

var errFault = errors.New("injected fault")

// faults makes one call of the file system fail, and records all of them.
// The zero faults only records.
type faults struct {
	calls []string
	fail  int  // the index of the call that fails, from 1
	after bool // the call takes place, and is reported as failed
	err   error
	hook  func(call string) // before each call
}

func (f *faults) do(call string, op func() error) error {
	f.calls = append(f.calls, call)
	if f.hook != nil {
		f.hook(call)
	}
	if len(f.calls) != f.fail {
		return op()
	}
	if f.after {
		if err := op(); err != nil {
			return err
		}
	}
	return f.err
}

// files is a sink on the real file system with these faults.
func (f *faults) files(dir string, owner *Owner) *keeper {
	files := newKeeper(dir, owner)
	files.open = func(dir string) (folder, error) {
		return f.folder("open secrets folder", func() (folder, error) { return openFolder(dir) })
	}
	return files
}

func (f *faults) folder(call string, open func() (folder, error)) (d folder, err error) {
	err = f.do(call, func() error { d, err = open(); return err })
	if err != nil {
		if d != nil {
			d.close()
		}
		return nil, err
	}
	return faultyFolder{d, f}, nil
}

func (f *faults) file(call string, open func() (file, error)) (d file, err error) {
	err = f.do(call, func() error { d, err = open(); return err })
	if err != nil {
		if d != nil {
			_ = d.Close()
		}
		return nil, err
	}
	return faultyFile{d, f}, nil
}

type faultyFolder struct {
	folder
	faults *faults
}

func (d faultyFolder) sub(name string) (folder, error) {
	return d.faults.folder("sub", func() (folder, error) { return d.folder.sub(name) })
}

func (d faultyFolder) mkdir(name string) error {
	return d.faults.do("mkdir", func() error { return d.folder.mkdir(name) })
}

func (d faultyFolder) create(name string) (file, error) {
	return d.faults.file("create", func() (file, error) { return d.folder.create(name) })
}

func (d faultyFolder) open(name string) (file, error) {
	return d.faults.file("open", func() (file, error) { return d.folder.open(name) })
}

func (d faultyFolder) lstat(name string) (info fs.FileInfo, err error) {
	err = d.faults.do("lstat", func() error { info, err = d.folder.lstat(name); return err })
	return info, err
}

func (d faultyFolder) listEntries() (entries []fs.DirEntry, err error) {
	err = d.faults.do("list", func() error { entries, err = d.folder.listEntries(); return err })
	return entries, err
}

func (d faultyFolder) symlink(target, name string) error {
	return d.faults.do("symlink", func() error { return d.folder.symlink(target, name) })
}

func (d faultyFolder) readlink(name string) (to string, err error) {
	err = d.faults.do("readlink", func() error { to, err = d.folder.readlink(name); return err })
	return to, err
}

func (d faultyFolder) rename(from, to string) error {
	return d.faults.do("rename", func() error { return d.folder.rename(from, to) })
}

func (d faultyFolder) remove(name string) error {
	return d.faults.do("remove", func() error { return d.folder.remove(name) })
}

func (d faultyFolder) removeAll(name string) error {
	return d.faults.do("removeAll", func() error { return d.folder.removeAll(name) })
}

func (d faultyFolder) sync() error { return d.faults.do("sync folder", d.folder.sync) }

type faultyFile struct {
	file
	faults *faults
}

// Write writes the half of p when it is to fail before it takes place.
func (f faultyFile) Write(p []byte) (n int, err error) {
	err = f.faults.do("write", func() error { n, err = f.file.Write(p); return err })
	if err != nil && n == 0 {
		n, _ = f.file.Write(p[:len(p)/2])
	}
	return n, err
}

func (f faultyFile) Read(p []byte) (n int, err error) {
	err = f.faults.do("read", func() error { n, err = f.file.Read(p); return err })
	return n, err
}

func (f faultyFile) Stat() (info fs.FileInfo, err error) {
	err = f.faults.do("stat", func() error { info, err = f.file.Stat(); return err })
	return info, err
}

func (f faultyFile) Chmod(mode fs.FileMode) error {
	return f.faults.do("chmod", func() error { return f.file.Chmod(mode) })
}

func (f faultyFile) Chown(uid, gid int) error {
	return f.faults.do("chown", func() error { return f.file.Chown(uid, gid) })
}

func (f faultyFile) Truncate(size int64) error {
	return f.faults.do("truncate", func() error { return f.file.Truncate(size) })
}

func (f faultyFile) Sync() error { return f.faults.do("sync file", f.file.Sync) }

// Close closes in any case, as close(2) does.
func (f faultyFile) Close() error {
	closed := f.file.Close()
	return f.faults.do("close", func() error { return closed })
}
