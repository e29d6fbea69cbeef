package metastore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"

	"go.etcd.io/bbolt"

	"github.com/dozekafka/doze-kafka/pkg/vfs"
)

// create makes an empty store. It is built under another name and renamed, so
// that a crash leaves no file that is half of one, and with three fsyncs (one
// of bbolt's own for the empty file) instead of the seven of an empty file, its name, its growth and two commits.
func create(path string, start func(*Tx) error) error {
	temporary := path + ".new"
	if err := vfs.OS.RemoveAll(temporary); err != nil { // a crash left it
		return err
	}
	db, err := openBolt(temporary, true)
	if err != nil {
		return err
	}
	err = db.Update(func(bolt *bbolt.Tx) error {
		for _, name := range buckets {
			if _, err := bolt.CreateBucket(name); err != nil {
				return err
			}
		}
		err := bolt.Bucket(bucketMeta).Put(keyFormat, binary.BigEndian.AppendUint32(nil, FormatVersion))
		if err != nil || start == nil {
			return err
		}
		t := &Tx{bolt: bolt, writable: true}
		return t.errorOf(start(t))
	})
	if err == nil {
		// The content before the name: without this sync the name could
		// survive a power cut and the content not, and no start would succeed.
		err = db.Sync()
	}
	if err := errors.Join(err, db.Close()); err != nil {
		return err
	}
	if err := vfs.OS.Rename(temporary, path); err != nil {
		return err
	}
	// Without this sync meta.db could be gone after a power cut, and with it
	// every topic that was acknowledged since.
	return vfs.OS.SyncDir(filepath.Dir(path))
}

// checkFormat refuses a file that is not ours, and one of a newer version (ST-4).
func (t *Tx) checkFormat() error {
	for _, name := range firstBuckets {
		if t.bolt.Bucket(name) == nil {
			return fmt.Errorf("not a meta.db of this broker (it has no %s)", name)
		}
	}
	v := t.get(bucketMeta, keyFormat)
	if len(v) != 4 {
		return errors.New("not a meta.db of this broker (it has no format version)")
	}
	if n := binary.BigEndian.Uint32(v); n > FormatVersion {
		return fmt.Errorf("format version %d is newer than this broker's, which is %d: use the broker that wrote it, or a newer one", n, FormatVersion)
	}
	return nil
}

// addBuckets makes the buckets that a file of an earlier build lacks.
func (s *Store) addBuckets() error {
	missing := false
	err := s.View(func(t *Tx) error {
		for _, name := range buckets {
			missing = missing || t.bolt.Bucket(name) == nil
		}
		return nil
	})
	if err != nil || !missing {
		return err // no commit, and so no fsync, at a usual start
	}
	return s.db.Update(func(bolt *bbolt.Tx) error {
		for _, name := range buckets {
			if _, err := bolt.CreateBucketIfNotExists(name); err != nil {
				return err
			}
		}
		return nil
	})
}

// walk reads every row to its end, so that a page that is damaged is met at
// the start and not by a client.
func (t *Tx) walk() error {
	var row []byte
	for _, name := range buckets {
		err := t.bolt.Bucket(name).ForEach(func(_, v []byte) error {
			row = append(row[:0], v...)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
