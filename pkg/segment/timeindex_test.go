package segment

import (
	"testing"

	"github.com/dozekafka/doze-kafka/pkg/vfs"
	"github.com/dozekafka/doze-kafka/pkg/vfs/faultfs"
)

// The search by time starts near its target, and does not walk there.
func TestTimePositionIsNear(t *testing.T) {
	disk := faultfs.New(newDisk(t))
	o, _ := options(disk)
	m := sealed(t, o, 0, 5_000, 700)
	s := must[*Segment](t)(Open(o, 0))
	reads := 0
	disk.OnOp(func(op vfs.Op) {
		if op.Kind == vfs.OpRead {
			reads++
		}
	})
	for _, i := range []int{0, 7, 2_500, 4_999} {
		reads = 0
		pos, err := s.TimePosition(m.batches[i].MaxTimestamp())
		if err != nil || pos > m.pos[i] || pos < m.pos[i]-6_000 || reads > 12 {
			t.Errorf("batch %d at %d: %d, %v, %d reads", i, m.pos[i], pos, err, reads)
		}
	}
	ok(t, s.Close())
}

// Timestamps need not ascend; batches without one are passed over.
func TestTimePositionWithTimestampsInAnyOrder(t *testing.T) {
	o, _ := options(newDisk(t))
	s, m := create(t, o, 0), &model{}
	for i := range int64(400) {
		b := batch(i, 1, 500, i*7_919%400-1)
		ok(t, s.Append(b, 1_000))
		m.add(b)
	}
	m.checkTimes(t, s)
	ok(t, s.Seal())
	m.check(t, s)
	ok(t, s.Close())
}
