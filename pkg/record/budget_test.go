package record

import (
	"sync"
	"testing"
	"testing/synctest"
)

// ST-10: what decompressors hold together is bounded, and a large claim is not overtaken.
func TestBudgetIsFirstComeFirstServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const mib = 1 << 20
		b := budget{size: 20 * mib, free: 20 * mib}
		b.acquire(12 * mib)
		b.acquire(mib) // not counted
		var mu sync.Mutex
		var order []int
		for _, n := range []int64{100, 6, 2} {
			go func() {
				b.acquire(n * mib)
				mu.Lock()
				defer mu.Unlock()
				order = append(order, int(n))
			}()
			synctest.Wait()
		}
		if len(order) != 0 {
			t.Fatalf("%v were let in", order)
		}
		b.release(12 * mib)
		synctest.Wait()
		if len(order) != 1 || order[0] != 100 {
			t.Fatalf("%v were let in, want the first", order)
		}
		b.release(100 * mib)
		synctest.Wait()
		if len(order) != 3 || b.free != 12*mib {
			t.Fatalf("%v were let in, %d free", order, b.free)
		}
	})
}
