package producer

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"testing"

	"github.com/dozekafka/doze-kafka/pkg/record"
)

func setSequence(b record.Batch, s int32) { binary.BigEndian.PutUint32(b[53:], uint32(s)) }

// resealed is a snapshot with magic, version and checksum made right.
func resealed(buf []byte) []byte {
	out := append([]byte(nil), buf...)
	copy(out, snapshotMagic)
	if binary.BigEndian.Uint16(out[4:]) != snapshotRewritten {
		binary.BigEndian.PutUint16(out[4:], snapshotVersion)
	}
	binary.BigEndian.PutUint32(out[6:], crc32.Checksum(out[snapshotChecked:], castagnoli))
	return out
}

// sent is one batch that the model's producer has sent.
type sent struct {
	sequence int32
	n        int
	offset   int64
}

// TX-1: a slice of everything sent says what is a repeat, what is next and
// what is out of order, over wraps, epochs and restarts.
func TestStateAgreesWithASliceOfAllBatches(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 0))
		p := &partition{}
		var history []sent // of the current epoch
		epoch := int16(0)
		for range 200 {
			next := int32(0)
			if len(history) > 0 {
				last := history[len(history)-1]
				next = record.AddSequence(last.sequence, int32(last.n))
			} else if epoch == 0 {
				next = 2147483647 - rng.Int32N(40)
			}
			switch op := rng.IntN(10); {
			case op < 5:
				n := 1 + rng.IntN(4)
				offset := p.end
				if got, want := p.append(data(t, 1, epoch, next, n, 1, false), Unverified), offsets(offset, n); got != want {
					t.Fatalf("seed %d: next: %s, want %s", seed, got, want)
				}
				history = append(history, sent{next, n, offset})
			case op < 8 && len(history) > 0:
				i := rng.IntN(min(len(history), 10))
				h := history[len(history)-1-i]
				want := "OUT_OF_ORDER_SEQUENCE_NUMBER"
				if i < CachedBatches {
					want = repeatOf(h.offset)
				}
				if got := p.append(data(t, 1, epoch, h.sequence, h.n, 1, false), Unverified); got != want {
					t.Fatalf("seed %d: repeat %d back: %s, want %s", seed, i, got, want)
				}
			case op == 8:
				p.run(t, "restart")
			case op == 9 && rng.IntN(5) == 0 && len(history) > 0:
				epoch++
				history = nil
			}
		}
	}
}

func offsets(base int64, n int) string { return fmt.Sprintf("offsets %d-%d", base, base+int64(n)-1) }

func repeatOf(offset int64) string { return fmt.Sprintf("repeat of offset %d timestamp 1", offset) }
