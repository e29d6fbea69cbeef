package record

import (
	"sync"
	"testing"
	"testing/synctest"
)

// ST-10: what decompressors hold together is bounded, and a large claim is not overtaken.
func TestBudgetIsFirstComeFirstServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := budget{free: 10}
		b.acquire(6)
		var mu sync.Mutex
		var order []int
		for _, n := range []int64{10, 3, 1} {
			go func() {
				b.acquire(n)
				mu.Lock()
				defer mu.Unlock()
				order = append(order, int(n))
			}()
			synctest.Wait()
		}
		if len(order) != 0 {
			t.Fatalf("%v were let in", order)
		}
		b.release(6)
		synctest.Wait()
		if len(order) != 1 || order[0] != 10 {
			t.Fatalf("%v were let in, want the first", order)
		}
		b.release(10)
		synctest.Wait()
		if len(order) != 3 || b.free != 6 {
			t.Fatalf("%v were let in, %d free", order, b.free)
		}
	})
}
