package handler

import (
	"math"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// FX-10: the address is the one that the endpoint gives for this connection.
func TestDescribeCluster(t *testing.T) {
	k := newKit(t)
	k.eachVersion(kmsg.DescribeCluster, func(t *testing.T, version int16) {
		for _, operations := range []bool{false, true} {
			req := kmsg.NewPtrDescribeClusterRequest()
			req.IncludeClusterAuthorizedOperations = operations
			resp := ask[*kmsg.DescribeClusterResponse](k, version, req)
			wantCode(t, resp.ErrorCode, nil)
			want := int32(math.MinInt32)
			if operations {
				want = 8096
			}
			if resp.ClusterID != testCluster || resp.ControllerID != testNode || resp.ClusterAuthorizedOperations != want || resp.ErrorMessage != nil {
				t.Fatalf("%+v", resp)
			}
			if len(resp.Brokers) != 1 || resp.Brokers[0].NodeID != testNode || resp.Brokers[0].Host != "127.0.0.1" ||
				resp.Brokers[0].Port != 9092 || resp.Brokers[0].Rack != nil || resp.Brokers[0].IsFenced {
				t.Fatalf("brokers %+v", resp.Brokers)
			}
		}
	})
}

func TestDescribeClusterKnowsBrokersOnly(t *testing.T) {
	k := newKit(t)
	for _, c := range []struct {
		kind int8
		want *kerr.Error
		text string
	}{
		{2, kerr.MismatchedEndpointType, "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER"},
		{0, kerr.UnsupportedEndpointType, "Unsupported endpoint type 0"},
		{3, kerr.UnsupportedEndpointType, "Unsupported endpoint type 3"},
	} {
		req := kmsg.NewPtrDescribeClusterRequest()
		req.EndpointType = c.kind
		for version := int16(1); version <= 2; version++ {
			resp := ask[*kmsg.DescribeClusterResponse](k, version, req)
			wantCode(t, resp.ErrorCode, c.want)
			wantText(t, resp.ErrorMessage, c.text)
			if resp.ControllerID != -1 || len(resp.Brokers) != 0 || resp.ClusterID != "" {
				t.Fatalf("%+v", resp)
			}
		}
	}
}
