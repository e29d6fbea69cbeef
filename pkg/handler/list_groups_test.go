package handler

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// GR-5: v4 has states and picks by them, v5 types.
func TestListGroupsByStateAndType(t *testing.T) {
	k := newKit(t, atOnceComplete)
	k.create("a", 1)
	k.commit("simple", "a", 0, 1)
	k.member("stable")
	k.eachVersion(kmsg.ListGroups, func(t *testing.T, version int16) {
		for _, c := range []struct {
			states, types []string
			want          map[string]kmsg.ListGroupsResponseGroup
		}{
			{nil, nil, map[string]kmsg.ListGroupsResponseGroup{"simple": {GroupState: "Empty"}, "stable": {ProtocolType: "consumer", GroupState: "Stable"}}},
			{[]string{"stable"}, nil, map[string]kmsg.ListGroupsResponseGroup{"stable": {ProtocolType: "consumer", GroupState: "Stable"}}},
			{[]string{" STABLE "}, []string{"Classic"}, map[string]kmsg.ListGroupsResponseGroup{"stable": {ProtocolType: "consumer", GroupState: "Stable"}}},
			{nil, []string{"consumer"}, nil},
			{nil, []string{" classic"}, nil}, // unlike states, types are not trimmed
		} {
			if version < 4 && c.states != nil || version < 5 && c.types != nil {
				continue
			}
			req := kmsg.NewPtrListGroupsRequest()
			req.StatesFilter, req.TypesFilter = c.states, c.types
			resp := ask[*kmsg.ListGroupsResponse](k, version, req)
			if len(resp.Groups) != len(c.want) {
				t.Fatalf("%v %v: %+v", c.states, c.types, resp.Groups)
			}
			for _, got := range resp.Groups {
				want, ok := c.want[got.Group]
				if !ok || got.ProtocolType != want.ProtocolType || version >= 4 && got.GroupState != want.GroupState || version >= 5 && got.GroupType != "classic" {
					t.Fatalf("%v %v: %+v", c.states, c.types, got)
				}
			}
		}
	})
}
