package segment

// recent remembers where the last batches of an active segment are, so that a
// consumer at the tail finds its batch without a search or a read. mu guards it.
type recent struct {
	batches [recentBatches]place
	count   int // batches ever added; the newest is at (count-1) % recentBatches
}

const recentBatches = 16

// A place is where a batch is: its last offset and position.
type place struct{ last, pos int64 }

func (r *recent) add(pos, last int64) {
	r.batches[r.count%recentBatches] = place{last, pos}
	r.count++
}

// find returns the position and size of the first batch that ends at or after
// offset; end is the end of the file. size 0 and the end: there is no such
// batch. ok is false if it may lie before those remembered.
func (r *recent) find(offset, end int64) (pos int64, size int, ok bool) {
	pos, after := end, end
	for i := r.count - 1; i >= max(r.count-recentBatches, 0); i-- {
		p := r.batches[i%recentBatches]
		if p.last < offset {
			return pos, int(after - pos), true
		}
		pos, after = p.pos, pos
	}
	// Everything remembered is at or after offset: the oldest is the answer
	// only if nothing lies before it.
	return pos, int(after - pos), pos == 0
}
