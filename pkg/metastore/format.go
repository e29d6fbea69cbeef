package metastore

import (
	"encoding/binary"
	"errors"
	"io/fs"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/dozekafka/doze-kafka/pkg/vfs"
)

// sealingFormat is the first version of the data directory's layout in which a
// segment is synced before its successor exists, so that only the newest can be torn.
const sealingFormat = 1

// Sealing says whether the data directory was written by a broker that syncs a
// segment before its successor exists. If not, every segment has to be checked (ST-4).
func (t *Tx) Sealing() bool {
	v := t.get(bucketMeta, keyFormat)
	return len(v) == 4 && binary.BigEndian.Uint32(v) >= sealingFormat
}

// RaiseFormat says that the data directory has this broker's layout.
func (t *Tx) RaiseFormat() error {
	return t.put(bucketMeta, keyFormat, binary.BigEndian.AppendUint32(nil, FormatVersion))
}

// Ours says whether the file at path is a meta.db of this broker, of whatever
// version: it has its buckets. Nothing is changed in it. A file that is not
// there, or is another program's, is not ours; one that another process has
// locked is an error after 1 s (vfs.ErrLocked), and so is a damaged one.
func Ours(path string) (ours bool, err error) {
	info, err := vfs.OS.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil || !info.Mode().IsRegular() || info.Size() == 0 {
		return false, err
	}
	err = guarded(path, func() error {
		ours, err = hasBuckets(path)
		return err
	})
	return ours, err
}

func hasBuckets(path string) (ours bool, err error) {
	db, err := bbolt.Open(path, mode, &bbolt.Options{Timeout: lockTimeout, ReadOnly: true, FreelistType: bbolt.FreelistMapType})
	switch {
	case errors.Is(err, bolterrors.ErrInvalid), errors.Is(err, bolterrors.ErrVersionMismatch), errors.Is(err, bolterrors.ErrChecksum):
		return false, nil
	case err != nil:
		return false, opening(path, err)
	}
	err = db.View(func(bolt *bbolt.Tx) error {
		ours = true
		for _, name := range firstBuckets {
			ours = ours && bolt.Bucket(name) != nil
		}
		return nil
	})
	return ours, errors.Join(err, db.Close())
}
