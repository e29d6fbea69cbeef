package handler

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/pkg/kafka"
	"github.com/dozekafka/doze-kafka/pkg/server"
)

// The endpoint types of DescribeCluster v1 (KIP-919).
const (
	endpointBrokers     = 1
	endpointControllers = 2
)

// describeCluster tells of the one node, which is its own controller
// (AuthHelper.computeDescribeClusterResponse). There are no fenced brokers.
func (h *Handler) describeCluster(req *server.Request) kmsg.Response {
	body := req.Body.(*kmsg.DescribeClusterRequest)
	resp := kmsg.NewPtrDescribeClusterResponse()
	resp.SetVersion(req.Version)
	resp.ControllerID = -1
	if err := checkEndpointType(body); err != nil {
		resp.ErrorCode, resp.ErrorMessage = kafka.ErrorCode(err), &err.Message
		return resp
	}
	resp.ClusterID, resp.ControllerID = h.ClusterID, h.NodeID
	node := kmsg.NewDescribeClusterResponseBroker()
	node.NodeID = h.NodeID
	node.Host, node.Port = h.self(req.Conn)
	resp.Brokers = append(resp.Brokers, node)
	if body.IncludeClusterAuthorizedOperations {
		resp.ClusterAuthorizedOperations = clusterOperations
	}
	return resp
}

// checkEndpointType wants brokers, the only endpoint type here. v0 cannot ask for another.
func checkEndpointType(body *kmsg.DescribeClusterRequest) *kafka.MessageError {
	if body.Version == 0 || body.EndpointType == endpointBrokers {
		return nil
	}
	if body.EndpointType == endpointControllers {
		return kafka.Errorf(kerr.MismatchedEndpointType,
			"The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER")
	}
	return kafka.Errorf(kerr.UnsupportedEndpointType, "Unsupported endpoint type %d", body.EndpointType)
}
