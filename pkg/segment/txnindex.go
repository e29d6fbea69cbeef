package segment

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sort"

	"github.com/dozekafka/doze-kafka/pkg/vfs"
)

// txnEntry is the size of an entry of .txnindex (FORMAT.md).
const txnEntry = 34

// ErrAborted is wrapped by the errors of Aborted: the index of aborted
// transactions is missing, or is not one. What the log holds has to be looked
// up in it, with the segments before it (SetAborted).
var ErrAborted = errors.New("the aborted transactions of the segment are not known")

// An AbortedTxn is a transaction whose abort marker is in the segment (AbortedTxn).
type AbortedTxn struct {
	ProducerID int64
	First      int64 // offset of its first batch, perhaps in a segment before
	Last       int64 // offset of the marker
	LastStable int64 // the last stable offset after the marker
}

// A txnIndex is the index of aborted transactions: a file of entries, by the
// offsets of their markers, and in memory those that are not yet in it. The
// segment's mu guards all but the file's content and dirty.
type txnIndex struct {
	file *handle

	known   bool   // the entries are all there are
	made    bool   // the file is there and holds nothing after the written entries
	written int    // entries in the file
	tail    []byte // the entries after them, encoded; its bytes never change, so that lookups take it out of the lock
	dirty   bool   // the file has changed since it was synced; guarded by indexMu
}

func (x *txnIndex) resetLocked(tail []byte) {
	x.known, x.made, x.written, x.tail = true, false, 0, tail
}

func appendTxn(b []byte, a AbortedTxn) []byte {
	b = binary.BigEndian.AppendUint16(b, 0) // version
	b = binary.BigEndian.AppendUint64(b, uint64(a.ProducerID))
	b = binary.BigEndian.AppendUint64(b, uint64(a.First))
	b = binary.BigEndian.AppendUint64(b, uint64(a.Last))
	return binary.BigEndian.AppendUint64(b, uint64(a.LastStable))
}

// decodeTxn reads an entry; false: no abort in a segment of this base says that.
func decodeTxn(b []byte, base int64) (AbortedTxn, bool) {
	a := AbortedTxn{
		ProducerID: int64(binary.BigEndian.Uint64(b[2:])),
		First:      int64(binary.BigEndian.Uint64(b[10:])),
		Last:       int64(binary.BigEndian.Uint64(b[18:])),
		LastStable: int64(binary.BigEndian.Uint64(b[26:])),
	}
	version := binary.BigEndian.Uint16(b)
	return a, version == 0 && a.ProducerID >= 0 && a.First >= 0 && a.First < a.Last && a.Last >= base &&
		a.LastStable >= 0 && a.LastStable-1 <= a.Last
}

// AddAborted enters a transaction that the last batch has aborted. Only who appends calls it.
func (s *Segment) AddAborted(a AbortedTxn) {
	s.mu.Lock()
	if s.txns.known { // else it is found in the log, with the others
		s.txns.tail = appendTxn(s.txns.tail, a)
	}
	full := len(s.txns.tail) >= gather*txnEntry
	s.mu.Unlock()
	if full {
		s.writeGathered()
	}
}

// SetAborted replaces the index by what was found in the log. That of a sealed
// segment is written at once; if it can't be it stays in memory, and the next open finds it as it was.
func (s *Segment) SetAborted(list []AbortedTxn) {
	s.indexMu.Lock()
	defer s.indexMu.Unlock()
	var content []byte
	for _, a := range list {
		content = appendTxn(content, a)
	}
	s.mu.Lock()
	s.txns.resetLocked(content)
	s.mu.Unlock()
	if !s.sealed.Load() || s.frozen {
		return
	}
	if err := s.replaceTxns(content); err != nil {
		s.opts.log().Warn("the index of aborted transactions could not be written and stays in memory", "file", s.txns.file.name, "error", err)
	}
}

// replaceTxns puts another file in the place of a sealed segment's index, as a
// whole: written where it is, a power cut could leave it empty, which says that nothing was aborted.
func (s *Segment) replaceTxns(content []byte) error {
	old := s.txns.file
	if err := old.shut(); err != nil {
		return err
	}
	err := vfs.WriteFileSync(s.opts.FS, old.name, content, filePerm)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.txns.file = newHandle(s.opts, old.name, readWrite)
	if err != nil {
		return err
	}
	s.txns.made, s.txns.written, s.txns.tail = true, len(content)/txnEntry, nil
	return nil
}

// AbortedKnown says whether the index is usable, and how many entries it has. It reads nothing.
func (s *Segment) AbortedKnown() (entries int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.txns.written + len(s.txns.tail)/txnEntry, s.txns.known
}

// Aborted appends to list the transactions with their abort in this segment of
// which something is at offsets from to upTo (exclusive). done says that no
// later segment has any (TransactionIndex.collectAbortedTxns). Errors wrap ErrAborted.
func (s *Segment) Aborted(list []AbortedTxn, from, upTo int64) (_ []AbortedTxn, done bool, err error) {
	s.mu.Lock()
	known, file, n, tail := s.txns.known, s.txns.file, s.txns.written, s.txns.tail
	s.mu.Unlock()
	if !known {
		return list, false, fmt.Errorf("%s: %w", file.name, ErrAborted)
	}
	c := txnCollector{base: s.base, from: from, upTo: upTo, list: list, last: s.base - 1}
	if n > 0 {
		err = s.abortedInFile(file, &c, n)
	}
	if err == nil && !c.done && !c.take(tail) {
		err = errors.New("an entry is none")
	}
	if err != nil {
		s.mu.Lock()
		if s.txns.file == file { // else it has been replaced since
			s.txns.known = false
		}
		s.mu.Unlock()
		return list, false, fmt.Errorf("%s: %w: %w", file.name, ErrAborted, err)
	}
	return c.list, c.done, nil
}

// A txnCollector takes entries in their order.
type txnCollector struct {
	base, from, upTo int64
	list             []AbortedTxn
	last             int64 // marker of the entry before
	done             bool
}

// take looks at encoded entries until it is done; false: one is none.
func (c *txnCollector) take(b []byte) bool {
	for ; len(b) >= txnEntry && !c.done; b = b[txnEntry:] {
		a, ok := decodeTxn(b, c.base)
		if !ok || a.Last <= c.last {
			return false
		}
		c.last = a.Last
		if a.Last >= c.from && a.First < c.upTo {
			c.list = append(c.list, a)
		}
		c.done = a.LastStable >= c.upTo
	}
	return true
}

// abortedInFile has the entries of the file collected, by pread: from the first that ends at or after from.
func (s *Segment) abortedInFile(h *handle, c *txnCollector, n int) error {
	file, err := h.acquire(0)
	if err != nil {
		return err
	}
	defer h.release()
	w := walkers.Get().(*walker)
	defer walkers.Put(w)
	const block = firstRead / txnEntry
	lo, hi := 0, n // the entry is in [lo, hi]
	for hi-lo > block {
		mid := int(uint(lo+hi) / 2)
		a, err := s.readTxn(file, w.buf, mid)
		if err != nil {
			return err
		}
		if a.Last < c.from {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	for ; lo < n && !c.done; lo += block {
		b := w.buf[:min(block, n-lo)*txnEntry]
		if err := readFull(file, b, int64(lo)*txnEntry); err != nil {
			return err
		}
		if !c.take(b) {
			return errors.New("an entry is none")
		}
	}
	return nil
}

func (s *Segment) readTxn(file vfs.File, buf []byte, i int) (AbortedTxn, error) {
	b := buf[:txnEntry]
	if err := readFull(file, b, int64(i)*txnEntry); err != nil {
		return AbortedTxn{}, err
	}
	a, ok := decodeTxn(b, s.base)
	if !ok {
		return AbortedTxn{}, fmt.Errorf("entry %d is none", i)
	}
	return a, nil
}

// checkTxns takes the index over if it can be one: its length is that of whole
// entries, and the last of them names an abort marker of its producer in the log.
func (s *Segment) checkTxns(log vfs.File) {
	n, ok := s.countTxns(log)
	s.indexMu.Lock()
	// The process that wrote it may have been killed before it was synced. If
	// Seal left that out, a power cut could empty the file, which then says that nothing was aborted.
	s.txns.dirty = true
	s.indexMu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.txns.known, s.txns.made, s.txns.written, s.txns.tail = ok, ok, n, nil
}

func (s *Segment) countTxns(log vfs.File) (n int, ok bool) {
	file, err := s.txns.file.acquire(0)
	if err != nil {
		return 0, false
	}
	defer s.txns.file.release()
	size, err := file.Size()
	if err != nil || size%txnEntry != 0 {
		return 0, false
	}
	if size == 0 {
		return 0, true
	}
	n = int(size / txnEntry)
	w := s.walk(log, 0, s.Size())
	defer w.done()
	a, err := s.readTxn(file, w.buf, n-1)
	if err != nil {
		return 0, false
	}
	f, err := s.search(log, a.Last, s.Size())
	if err != nil || f.size == 0 || f.last != a.Last {
		return 0, false
	}
	w.move(f.pos, s.Size(), s.base)
	h, err := w.header()
	if err != nil || !h.Control() || h.ProducerID() != a.ProducerID {
		return 0, false
	}
	return n, true
}

// writeTxns moves the entries from memory to the file, and makes it if there is
// none. After an error they are still in memory. indexMu is held.
func (s *Segment) writeTxns(sync bool) error {
	x := &s.txns
	s.mu.Lock()
	known, made, at, tail := x.known, x.made, int64(x.written)*txnEntry, x.tail
	s.mu.Unlock()
	if !known || !sync && len(tail) == 0 {
		return nil // a file without entries would say that nothing was aborted
	}
	file, err := x.file.acquire(createFlag)
	if err != nil {
		return err
	}
	defer x.file.release()
	if !made {
		// Entries of before a crash or a rebuild must not follow ours.
		size, err := file.Size()
		if err == nil && size > 0 {
			x.dirty = true
			err = file.Truncate(0)
		}
		if err != nil {
			return err
		}
	}
	if len(tail) > 0 {
		x.dirty = true
		if err := writeFull(file, tail, at); err != nil {
			return err
		}
	}
	s.mu.Lock()
	x.made = true
	x.written += len(tail) / txnEntry
	x.tail = slices.Clone(x.tail[len(tail):])
	s.mu.Unlock()
	if !sync || !x.dirty {
		return nil // the name of an empty file is synced with the directory
	}
	// Without it a power cut after a clean stop or a roll loses the entries,
	// and the aborted transactions have to be looked for in the whole log.
	if err := syncFile(file); err != nil {
		return err
	}
	x.dirty = false
	return nil
}

// UpperBound is an offset up to which a read that ends at a file position may
// have gone: that of the first index entry from there on. ok is false if there
// is none (LogSegment.fetchUpperBoundOffset). Like every entry that is found it is held against the log.
func (s *Segment) UpperBound(pos int64) (offset int64, ok bool) {
	file, err := s.logFile.acquire(0)
	if err != nil {
		return 0, false
	}
	defer s.logFile.release()
	w := s.walk(file, 0, s.Size())
	defer w.done()
	e, ok, err := s.ceil(w, pos)
	if err != nil || !ok {
		return 0, false
	}
	w.move(e.value, s.Size(), s.base)
	if h, err := w.header(); err != nil || h.LastOffset() != s.base+e.key {
		s.repair(s.wrongEntry(e))
		return 0, false
	}
	return s.base + e.key, true
}

// ceil finds the first entry of .index whose position is at or after pos.
func (s *Segment) ceil(w *walker, pos int64) (entry, bool, error) {
	x := &s.offsets
	s.mu.Lock()
	n := x.written
	e, ok := x.ceilIn(x.tail, pos)
	s.mu.Unlock()
	if n == 0 {
		return e, ok, nil
	}
	file, err := x.file.acquire(0)
	if err != nil {
		return entry{}, false, err
	}
	defer x.file.release()
	block := firstRead / x.size
	lo, hi := 0, n // the entry is in [lo, hi]
	for hi-lo >= block {
		mid := int(uint(lo+hi) / 2)
		e, err := x.read(file, w.buf, mid)
		if err != nil {
			return entry{}, false, err
		}
		if e.value < pos {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	b := w.buf[:(min(hi+1, n)-lo)*x.size]
	if err := readFull(file, b, int64(lo)*int64(x.size)); err != nil {
		return entry{}, false, err
	}
	if inFile, found := x.ceilIn(b, pos); found {
		return inFile, true, nil
	}
	return e, ok, nil // of those in memory
}

// ceilIn finds the first of the entries in b whose value is at least value.
func (x *index) ceilIn(b []byte, value int64) (entry, bool) {
	n := len(b) / x.size
	i := sort.Search(n, func(i int) bool { return x.decode(b[i*x.size:]).value >= value })
	if i == n {
		return entry{}, false
	}
	return x.decode(b[i*x.size:]), true
}
