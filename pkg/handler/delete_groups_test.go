package handler

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// GR-5: only groups without members are deleted; a name given twice is answered once.
func TestDeleteGroups(t *testing.T) {
	k := newKit(t, atOnceComplete)
	k.create("a", 1)
	k.member("stable")
	k.eachVersion(kmsg.DeleteGroups, func(t *testing.T, version int16) {
		k.commit("simple", "a", 0, 5)
		req := kmsg.NewPtrDeleteGroupsRequest()
		req.Groups = []string{"simple", "stable", "simple", "nothing"}
		resp := ask[*kmsg.DeleteGroupsResponse](k, version, req)
		want := map[string]*kerr.Error{"simple": nil, "stable": kerr.NonEmptyGroup, "nothing": kerr.GroupIDNotFound}
		if len(resp.Groups) != len(want) {
			t.Fatalf("%+v", resp.Groups)
		}
		for _, g := range resp.Groups {
			wantCode(t, g.ErrorCode, want[g.Group])
		}
		if got := k.committed("simple", "a", 0); got != -1 {
			t.Fatalf("the deleted group has offset %d", got)
		}
		wantState(t, k.described(4, "stable"), "Stable", 1)
	})
}
