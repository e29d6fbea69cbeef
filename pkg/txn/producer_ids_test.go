package txn

import (
	"path/filepath"
	"testing"

	"github.com/dozekafka/doze-kafka/pkg/metastore"
)

// TX-2: blocks are taken before they are used, so that another start never gives an id twice.
func TestProducerIDsComeInDurableBlocks(t *testing.T) {
	store, err := metastore.Open(metastore.Options{Path: filepath.Join(t.TempDir(), "meta.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	seen := make(map[int64]bool)
	for range 3 { // three starts on one store
		ids := NewProducerIDs(store)
		for range 1100 {
			id, err := ids.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if seen[id] {
				t.Fatalf("id %d is handed out twice", id)
			}
			seen[id] = true
		}
	}
	if !seen[0] || !seen[2000] || !seen[4000] || seen[1100] {
		t.Fatal("the ids are not in blocks of a thousand")
	}
}
