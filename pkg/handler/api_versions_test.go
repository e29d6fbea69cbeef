package handler

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/pkg/server"
)

func apiVersionsRequest() *kmsg.ApiVersionsRequest {
	req := kmsg.NewPtrApiVersionsRequest()
	req.ClientSoftwareName, req.ClientSoftwareVersion = "franz-go", "1.22.3"
	return req
}

func TestApiVersionsListsWhatIsSpoken(t *testing.T) {
	k := newKit(t)
	k.eachVersion(kmsg.ApiVersions, func(t *testing.T, version int16) {
		resp := ask[*kmsg.ApiVersionsResponse](k, version, apiVersionsRequest())
		wantCode(t, resp.ErrorCode, nil)
		var got [][3]int16
		for _, a := range resp.ApiKeys {
			got = append(got, [3]int16{a.ApiKey, a.MinVersion, a.MaxVersion})
		}
		if !slices.Equal(got, advertised) {
			t.Fatalf("advertised %v, want %v", got, advertised)
		}
		if version < 3 {
			return
		}
		features := fmt.Sprint(resp.FinalizedFeaturesEpoch)
		for _, s := range resp.SupportedFeatures {
			features += fmt.Sprintf(" %s %d-%d", s.Name, s.MinVersion, s.MaxVersion)
		}
		for _, f := range resp.FinalizedFeatures {
			features += fmt.Sprintf(" %s=%d-%d", f.Name, f.MinVersionLevel, f.MaxVersionLevel)
		}
		want := "3 metadata.version 7-33 transaction.version 0-2 metadata.version=33-33 transaction.version=2-2"
		if version == 3 { // KAFKA-17492
			want = "3 metadata.version 7-33 metadata.version=33-33 transaction.version=2-2"
		}
		if features != want {
			t.Fatalf("features %q, want %q", features, want)
		}
	})
}

func TestApiVersionsAnswersAnUnknownVersionInV0(t *testing.T) {
	k := newKit(t)
	reply := k.Handle(context.Background(), &server.Request{Conn: k.conn, Key: 18, Version: 6})
	out, err := reply.Response()
	check(t, err)
	if !out.HeaderV0 || out.Body.GetVersion() != 0 {
		t.Fatalf("header v0 %v, body v%d", out.HeaderV0, out.Body.GetVersion())
	}
	resp := out.Body.(*kmsg.ApiVersionsResponse)
	wantCode(t, resp.ErrorCode, kerr.UnsupportedVersion)
	if len(resp.ApiKeys) != 1 || resp.ApiKeys[0].ApiKey != 18 || resp.ApiKeys[0].MinVersion != 0 || resp.ApiKeys[0].MaxVersion != 5 {
		t.Fatalf("keys %+v", resp.ApiKeys)
	}
}

func TestApiVersionsNotesTheSoftware(t *testing.T) {
	k := newKit(t)
	ask[*kmsg.ApiVersionsResponse](k, 3, apiVersionsRequest())
	if k.conn.SoftwareName != "franz-go" || k.conn.SoftwareVersion != "1.22.3" {
		t.Fatalf("software %q %q", k.conn.SoftwareName, k.conn.SoftwareVersion)
	}
}

// KIP-511: a name that is none is INVALID_REQUEST without keys, in the version asked for.
func TestApiVersionsRefusesStrangeSoftware(t *testing.T) {
	k := newKit(t)
	for _, name := range []string{"", "-x", "x-", "a b", "ä", ".", "a\n"} {
		for _, which := range []string{"name", "version"} {
			req := apiVersionsRequest()
			if which == "name" {
				req.ClientSoftwareName = name
			} else {
				req.ClientSoftwareVersion = name
			}
			for version := int16(3); version <= 5; version++ {
				resp := ask[*kmsg.ApiVersionsResponse](k, version, req)
				wantCode(t, resp.ErrorCode, kerr.InvalidRequest)
				if len(resp.ApiKeys) != 0 || len(resp.SupportedFeatures) != 0 {
					t.Fatalf("%s %q: keys %v", which, name, resp.ApiKeys)
				}
			}
		}
	}
}

// KIP-1242: another cluster or node is told to go back to its bootstrap servers.
func TestApiVersionsChecksClusterAndNode(t *testing.T) {
	k := newKit(t)
	for _, c := range []struct {
		cluster string
		node    int32
		want    *kerr.Error
	}{
		{testCluster, testNode, nil},
		{"", -1, nil}, // neither
		{testCluster, testNode + 1, kerr.RebootstrapRequired},
		{"another", testNode, kerr.RebootstrapRequired},
		{testCluster, -1, kerr.InvalidRequest},
		{"", testNode, kerr.InvalidRequest},
	} {
		req := apiVersionsRequest()
		req.NodeID = c.node
		if c.cluster != "" {
			req.ClusterID = &c.cluster
		}
		wantCode(t, ask[*kmsg.ApiVersionsResponse](k, 5, req).ErrorCode, c.want)
	}
}
