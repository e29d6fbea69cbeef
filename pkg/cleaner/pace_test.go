package cleaner

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// --cleaner-bytes-per-second holds over many small and few large pieces, and a stop does not wait for it.
func TestPaceBoundsBytesASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, piece := range []int{100, 5000, 300_000} {
			p := pacer{rate: 100_000}
			begin := time.Now()
			for range 3_000_000 / piece {
				if err := p.wait(t.Context(), piece); err != nil {
					t.Fatal(err)
				}
			}
			if took := time.Since(begin); took < 30*time.Second-leastWait || took > 31*time.Second {
				t.Errorf("3 MB in pieces of %d took %v", piece, took)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := (&pacer{rate: 1}).wait(ctx, 1_000_000); err == nil {
			t.Error("it waited to the end")
		}
		if err := (&pacer{}).wait(ctx, 1<<40); err != nil {
			t.Error(err)
		}
	})
}
