package commitlog

// An offsetSet is a set of offsets, a bit each where they are close together.
type offsetSet struct {
	pages map[int64]*offsetPage // by offset / pageOffsets
	at    int64                 // the page that was used last, which the next offset is likely to be on
	page  *offsetPage           // nil: it has none
}

const (
	pageOffsets = 1024
	// pageBytes is about the memory of a page, with its place in the map.
	pageBytes = pageOffsets/8 + 64
)

type offsetPage [pageOffsets / 64]uint64

// reset forgets all offsets, and their memory.
func (s *offsetSet) reset() { *s = offsetSet{} }

// bytes is about the memory that the set takes.
func (s *offsetSet) bytes() int { return len(s.pages) * pageBytes }

func (s *offsetSet) add(offset int64) {
	at := offset / pageOffsets
	if s.page == nil || s.at != at {
		if s.pages == nil {
			s.pages = map[int64]*offsetPage{}
		}
		p := s.pages[at]
		if p == nil {
			p = new(offsetPage)
			s.pages[at] = p
		}
		s.at, s.page = at, p
	}
	i := offset % pageOffsets
	s.page[i/64] |= 1 << (i % 64)
}

func (s *offsetSet) has(offset int64) bool {
	if at := offset / pageOffsets; s.at != at {
		s.at, s.page = at, s.pages[at]
	}
	i := offset % pageOffsets
	return s.page != nil && s.page[i/64]&(1<<(i%64)) != 0
}
