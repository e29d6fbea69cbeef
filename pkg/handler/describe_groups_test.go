package handler

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// GR-5.
func TestDescribeGroupsTellsMembers(t *testing.T) {
	k := newKit(t, atOnceComplete)
	id, _ := k.member("g")
	k.eachVersion(kmsg.DescribeGroups, func(t *testing.T, version int16) {
		g := k.described(version, "g")
		wantCode(t, g.ErrorCode, nil)
		wantState(t, g, "Stable", 1)
		m := g.Members[0]
		if g.ProtocolType != "consumer" || g.Protocol != "range" || m.MemberID != id || m.ClientID != "test" || m.ClientHost != "/127.0.0.1" ||
			string(m.MemberAssignment) != "all" || len(m.ProtocolMetadata) == 0 {
			t.Fatalf("%+v", g)
		}
		if g.AuthorizedOperations != -1<<31 {
			t.Fatalf("operations %d though nobody asked", g.AuthorizedOperations)
		}
	})
}

// KIP-1043: v6 says that there is no such group, an older version that it is dead.
func TestDescribeGroupsOfAnUnknownGroup(t *testing.T) {
	k := newKit(t, atOnceComplete)
	k.eachVersion(kmsg.DescribeGroups, func(t *testing.T, version int16) {
		g := k.described(version, "nothing")
		wantState(t, g, "Dead", 0)
		if version < 6 {
			wantCode(t, g.ErrorCode, nil)
			return
		}
		wantCode(t, g.ErrorCode, kerr.GroupIDNotFound)
		wantText(t, g.ErrorMessage, "Group nothing not found.")
	})
}

func TestDescribeGroupsTellsOperationsIfAsked(t *testing.T) {
	k := newKit(t, atOnceComplete)
	k.member("g")
	req := kmsg.NewPtrDescribeGroupsRequest()
	req.Groups, req.IncludeAuthorizedOperations = []string{"g"}, true
	for version := int16(3); version <= 6; version++ {
		// READ, DELETE, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS
		if got := ask[*kmsg.DescribeGroupsResponse](k, version, req).Groups[0].AuthorizedOperations; got != 3400 {
			t.Fatalf("v%d: operations %d", version, got)
		}
	}
	req.Groups = []string{"nothing"}
	for version, want := range map[int16]int32{5: 3400, 6: -1 << 31} { // v6 has an error instead
		if got := ask[*kmsg.DescribeGroupsResponse](k, version, req).Groups[0].AuthorizedOperations; got != want {
			t.Fatalf("v%d of a group that is not there: operations %d", version, got)
		}
	}
}
