package history

import "slices"

// None is the value of what there is not.
const None = "none"

// A fact is such as "topic a", "config a", "offset group a 0"; it has one value that was promised, or besides it those that
// unanswered requests may have made of it. Its words are the caller's.

// Begin says that a request is on its way that makes something of facts.
func (h *History) Begin(changes map[string]string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.beginLocked(changes)
}

func (h *History) beginLocked(changes map[string]string) {
	for fact, value := range changes {
		h.facts[fact] = append(slices.Clone(h.facts[fact]), value)
	}
}

// Promise says that the request was answered.
func (h *History) Promise(changes map[string]string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.promiseLocked(changes)
}

func (h *History) promiseLocked(changes map[string]string) {
	for fact, value := range changes {
		h.facts[fact] = []string{value}
	}
}

// Deny says that the request was refused for certain: facts are what they were before its Begin.
func (h *History) Deny(changes map[string]string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.denyLocked(changes)
}

func (h *History) denyLocked(changes map[string]string) {
	for fact, value := range changes {
		values := h.facts[fact]
		for i, v := range slices.Backward(values) {
			if v == value {
				h.facts[fact] = slices.Concat(values[:i], values[i+1:])
				break
			}
		}
	}
}

// May is what a fact may be, nil for one that nobody has spoken of.
func (h *History) May(fact string) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.facts[fact])
}

// Facts are all that somebody has spoken of, in order.
func (h *History) Facts() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var all []string
	for fact := range h.facts {
		all = append(all, fact)
	}
	slices.Sort(all)
	return all
}

// Widen lets facts be what they may be in another history, too.
func (h *History) Widen(other *History) {
	for _, fact := range other.Facts() {
		values := other.May(fact)
		h.mu.Lock()
		h.facts[fact] = append(slices.Clone(h.facts[fact]), values...)
		h.mu.Unlock()
	}
}
