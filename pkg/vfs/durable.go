package vfs

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// tempSuffix marks the half-written file of a WriteFileSync. One that a crash
// left behind is overwritten by the next WriteFileSync of the same name.
const tempSuffix = ".tmp"

// ReadFile reads a whole file.
func ReadFile(fsys FS, name string) ([]byte, error) {
	f, err := fsys.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read: nothing is lost by a failing close
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	data := make([]byte, size)
	n, err := f.ReadAt(data, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return data[:n], nil
}

// WriteFileSync replaces a small file as a whole, durably. After a power cut
// at any moment the name holds the old content or the new one, and once
// WriteFileSync has returned nil, the new one. After an error it holds either.
//
// Two calls for one name must not overlap: they share a temporary file.
func WriteFileSync(fsys FS, name string, data []byte, perm fs.FileMode) error {
	temp := name + tempSuffix
	if err := writeSynced(fsys, temp, data, perm); err != nil {
		_ = fsys.Remove(temp) // the first error is the one to tell
		return err
	}
	if err := fsys.Rename(temp, name); err != nil {
		_ = fsys.Remove(temp)
		return err
	}
	// Without this sync the rename may be undone: the caller would go on with
	// the new content and find the old one after the power cut.
	return fsys.SyncDir(filepath.Dir(name))
}

func writeSynced(fsys FS, name string, data []byte, perm fs.FileMode) error {
	f, err := fsys.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC, perm)
	if err != nil {
		return err
	}
	if _, err := f.WriteAt(data, 0); err != nil {
		return errors.Join(err, f.Close())
	}
	// The content before the name: without this sync the rename could survive
	// a power cut and name an empty file, and the old content would be gone.
	if err := f.Sync(); err != nil {
		return errors.Join(err, f.Close())
	}
	return f.Close()
}

// MkdirAll makes a directory and its missing parents, durably: once it has
// returned nil, the whole path survives a power cut.
//
// It syncs one directory even if nothing is missing. A caller that makes many
// directories in one that it knows to be durable uses Mkdir and one SyncDir.
func MkdirAll(fsys FS, name string, perm fs.FileMode) error {
	name = filepath.Clean(name)
	parent := filepath.Dir(name)
	fi, err := fsys.Stat(name)
	switch {
	case err == nil && !fi.IsDir():
		return &fs.PathError{Op: "mkdir", Path: name, Err: fs.ErrExist}
	case err == nil:
		return syncExisting(fsys, name, parent)
	case !errors.Is(err, fs.ErrNotExist) || parent == name:
		return err
	}
	if err := MkdirAll(fsys, parent, perm); err != nil {
		return err
	}
	if err := fsys.Mkdir(name, perm); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	// Without this sync the directory may vanish with all that is made in it,
	// however well that is synced: a file is found by its names from the top.
	return fsys.SyncDir(parent)
}

// syncExisting syncs the name of the lowest directory that was there before.
// A process that was killed between its Mkdir and its SyncDir left a name that
// the next power cut takes. Only the lowest can be such a one: MkdirAll syncs
// each directory's name before it makes the next in it.
func syncExisting(fsys FS, name, parent string) error {
	if parent == name {
		return nil // the root, or the working directory
	}
	err := fsys.SyncDir(parent)
	if errors.Is(err, fs.ErrPermission) {
		return nil // a parent that we may not open is not one where we made names
	}
	return err
}

// CopySynced copies a file to another name of the same disk. The content of the copy is durable when it
// returns nil, its name is not: after an error the copy holds any part.
func CopySynced(fsys FS, to, from string, perm fs.FileMode) error {
	src, err := fsys.OpenFile(from, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer func() { _ = src.Close() }() // only read
	dst, err := fsys.OpenFile(to, os.O_RDWR|os.O_CREATE|os.O_TRUNC, perm)
	if err != nil {
		return err
	}
	size, err := src.Size()
	if err == nil {
		_, err = io.Copy(io.NewOffsetWriter(dst, 0), io.NewSectionReader(src, 0, size))
	}
	if err == nil {
		// Without it the copy could take the original's place and have holes after a power cut.
		err = dst.Sync()
	}
	return errors.Join(err, dst.Close())
}
