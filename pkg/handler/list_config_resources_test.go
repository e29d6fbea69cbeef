package handler

import (
	"slices"
	"strconv"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// KIP-1142.
func TestListConfigResources(t *testing.T) {
	k := newKit(t)
	k.create("b", 1)
	k.create("a", 1)
	for _, x := range []struct {
		version int16
		types   []int8
		want    []string // type and name
		err     *kerr.Error
	}{
		{0, nil, nil, nil},
		{1, nil, []string{"4 7", "8 7", "2 a", "2 b"}, nil},
		{1, []int8{2, 2}, []string{"2 a", "2 b"}, nil},
		{1, []int8{8, 4}, []string{"4 7", "8 7"}, nil},
		{1, []int8{16, 32}, nil, nil},
		{1, []int8{2, 77}, nil, kerr.UnsupportedVersion},
		{1, []int8{0}, nil, kerr.UnsupportedVersion},
	} {
		req := kmsg.NewPtrListConfigResourcesRequest()
		req.ResourceTypes = x.types
		resp := ask[*kmsg.ListConfigResourcesResponse](k, x.version, req)
		wantCode(t, resp.ErrorCode, x.err)
		var got []string
		for _, r := range resp.ConfigResources {
			got = append(got, strconv.Itoa(int(r.Type))+" "+r.Name)
		}
		if !slices.Equal(got, x.want) {
			t.Fatalf("%+v: %q", x, got)
		}
	}
}
