package classic

import (
	"maps"
	"slices"
	"testing"
)

func TestASubscriptionOfAnyVersionIsRead(t *testing.T) {
	v3 := subscriptionOf("b", "a", "b")
	v3[1] = 3
	v3 = append(v3, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff) // owned partitions, generation, rack
	for _, c := range []struct {
		metadata []byte
		topics   []string
		ok       bool
	}{
		{subscriptionOf(), nil, true},
		{subscriptionOf("t"), []string{"t"}, true},
		{append(subscriptionOf("t")[:9], 0, 0, 0, 2, 1, 2), []string{"t"}, true}, // with user data
		{v3, []string{"a", "b"}, true},
		{nil, nil, false},
		{[]byte("sarama"), nil, false},
		{append([]byte{0xff, 0xff}, subscriptionOf("t")[2:]...), nil, false}, // version -1
		{subscriptionOf("t")[:9], nil, false},                                // no user data, not even none
		{[]byte{0, 0, 0, 0, 0, 1, 0xff, 0xff, 0, 0, 0, 0}, nil, false},       // a null name
		{append(subscriptionOf("t")[:9], 0, 0, 0, 3, 1, 2), nil, false},      // cut off
	} {
		got := map[string]struct{}{}
		if ok := subscription(c.metadata, got); ok != c.ok || ok && !slices.Equal(slices.Sorted(maps.Keys(got)), c.topics) {
			t.Errorf("%q: %v, %v", c.metadata, got, ok)
		}
	}
}

func FuzzSubscription(f *testing.F) {
	f.Add(subscriptionOf("a", "b"))
	f.Add([]byte{0, 0, 0x7f, 0xff, 0xff, 0xff, 0, 1, 'x'})
	f.Fuzz(func(t *testing.T, b []byte) {
		topics := map[string]struct{}{}
		subscription(b, topics)
		for name := range topics {
			if len(name) > len(b) {
				t.Errorf("topic of %d bytes out of %d", len(name), len(b))
			}
		}
	})
}
