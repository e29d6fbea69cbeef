package chaos

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
)

// A keyed is what was written to the compacted topic. Each key has one writer, so that its latest is known.
type keyed struct {
	mu     sync.Mutex
	sent   int
	all    map[int]*written      // by number
	byKey  map[string][]*written // in order
	passes map[string]int        // what the compactor was told
}

// A written is one record. Its number is in a header, and in its value unless it is a tombstone.
type written struct {
	n         int
	key       string
	part      int32
	tombstone bool
	state     outcome
	offset    int64 // -1: not known
}

func newKeyed() *keyed {
	return &keyed{all: map[int]*written{}, byKey: map[string][]*written{}, passes: map[string]int{}}
}

// send notes a record before it is sent.
func (k *keyed) send(key string, part int32, tombstone bool, state outcome) *written {
	k.mu.Lock()
	defer k.mu.Unlock()
	w := &written{n: k.sent, key: key, part: part, tombstone: tombstone, state: state, offset: -1}
	k.sent++
	k.all[w.n] = w
	k.byKey[key] = append(k.byKey[key], w)
	return w
}

// value is that of its record.
func (w *written) value() []byte {
	if w.tombstone {
		return nil
	}
	return fmt.Appendf(nil, "number %d of %s, and some more for it to take a little room", w.n, w.key)
}

// became says how a record has ended, and where.
func (k *keyed) became(w *written, state outcome, offset int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	w.state, w.offset = state, offset
}

// at is what a record that was read has to be; the error says what is wrong with it.
func (k *keyed) at(part int32, offset int64, key, value []byte, number string) (*written, error) {
	n, err := strconv.Atoi(number)
	if err != nil {
		return nil, fmt.Errorf("%s-%d: offset %d has no number: %w", compacted, part, offset, err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	w := k.all[n]
	switch {
	case w == nil:
		return nil, fmt.Errorf("%s-%d: offset %d has number %d, which nobody has sent", compacted, part, offset, n)
	case w.part != part || w.key != string(key) || (value == nil) != w.tombstone || string(value) != string(w.value()):
		return nil, fmt.Errorf("%s-%d: offset %d is %q=%q, and number %d is %+v", compacted, part, offset, key, value, n, *w)
	case w.offset >= 0 && w.offset != offset:
		return nil, fmt.Errorf("%s-%d: %q of offset %d is at %d", compacted, part, key, w.offset, offset)
	}
	return w, nil
}

// check holds what is left, by key in order of offsets, against what was written. Nobody writes meanwhile.
func (k *keyed) check(left map[string][]*written) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	var errs []error
	for key, list := range left {
		for i, w := range list {
			if w.state == aborted {
				errs = append(errs, fmt.Errorf("%q: %+v was aborted, and is there", key, *w))
			}
			if i > 0 && w.n <= list[i-1].n {
				errs = append(errs, fmt.Errorf("%q: number %d comes after %d", key, w.n, list[i-1].n))
			}
		}
	}
	for key, list := range k.byKey {
		errs = append(errs, checkKey(key, list, left[key]))
	}
	return errors.Join(errs...)
}

// checkKey wants the last one that is left of a key to be its latest acknowledged one, or one of those after it that nobody knows of.
// None may be left if one of these is a tombstone, or if none was acknowledged.
func checkKey(key string, all, left []*written) error {
	latest := -1
	for i, w := range all {
		if w.state == committed {
			latest = i
		}
	}
	may, gone := map[int]bool{}, latest < 0
	for _, w := range all[max(latest, 0):] {
		if w.state != aborted {
			may[w.n], gone = true, gone || w.tombstone
		}
	}
	switch {
	case len(left) == 0 && !gone:
		return fmt.Errorf("%q is lost: its latest is one of the numbers %v", key, slices.Sorted(maps.Keys(may)))
	case len(left) > 0 && !may[left[len(left)-1].n]:
		return fmt.Errorf("%q: number %d is the latest that is there; it ought to be one of %v", key, left[len(left)-1].n, slices.Sorted(maps.Keys(may)))
	}
	return nil
}
