package handler

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// FX-21: it finds this node at once, whatever the key.
func TestFindCoordinatorAlwaysFinds(t *testing.T) {
	k := newKit(t)
	k.eachVersion(kmsg.FindCoordinator, func(t *testing.T, version int16) {
		for kind := int8(0); kind <= 1; kind++ {
			req := kmsg.NewPtrFindCoordinatorRequest()
			req.CoordinatorType = kind
			req.CoordinatorKey, req.CoordinatorKeys = "group", []string{"b", "", "a"}
			resp := ask[*kmsg.FindCoordinatorResponse](k, version, req)
			if version < 4 {
				wantCode(t, resp.ErrorCode, nil)
				if resp.NodeID != testNode || resp.Host != "127.0.0.1" || resp.Port != 9092 {
					t.Fatalf("%+v", resp)
				}
				if version >= 1 {
					wantText(t, resp.ErrorMessage, "NONE")
				}
				continue
			}
			if len(resp.Coordinators) != 3 {
				t.Fatalf("%+v", resp.Coordinators)
			}
			for i, c := range resp.Coordinators {
				wantCode(t, c.ErrorCode, nil)
				wantText(t, c.ErrorMessage, "")
				if c.Key != req.CoordinatorKeys[i] || c.NodeID != testNode || c.Host != "127.0.0.1" || c.Port != 9092 {
					t.Fatalf("%+v", c)
				}
			}
		}
	})
}

func TestFindCoordinatorRefusesTypesByVersion(t *testing.T) {
	k := newKit(t)
	const shareKey = "a:b:AAECAwQFBgcICQoLDA0ODw:3"
	for version := int16(1); version <= 6; version++ {
		for _, c := range []struct {
			kind  int8
			key   string
			fails bool
		}{
			{2, shareKey, version < 6},
			{2, "group", true},
			{2, ":AAECAwQFBgcICQoLDA0ODw:3", true},
			{2, "g:AAECAwQFBgcICQoLDA0ODw:x", true},
			{2, "g:id:3", true},
			{3, "group", true},
		} {
			req := kmsg.NewPtrFindCoordinatorRequest()
			req.CoordinatorType, req.CoordinatorKey, req.CoordinatorKeys = c.kind, c.key, []string{c.key}
			resp := ask[*kmsg.FindCoordinatorResponse](k, version, req)
			code, node, text := resp.ErrorCode, resp.NodeID, resp.ErrorMessage
			if version >= 4 {
				code, node, text = resp.Coordinators[0].ErrorCode, resp.Coordinators[0].NodeID, resp.Coordinators[0].ErrorMessage
			}
			if !c.fails {
				wantCode(t, code, nil)
				continue
			}
			wantCode(t, code, kerr.InvalidRequest)
			if node != -1 || text == nil || (*text == "") != (version >= 4 && c.kind == 2) {
				t.Fatalf("v%d %+v: node %d, text %s", version, c, node, show(text))
			}
		}
	}
}
