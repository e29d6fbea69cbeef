package handler

import (
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/pkg/kafka"
	"github.com/dozekafka/doze-kafka/pkg/server"
)

// The coordinator types of FindCoordinator. v0 asks for groups only.
const (
	coordinatorGroup       = 0
	coordinatorTransaction = 1
	coordinatorShare       = 2 // v6
)

// findCoordinator answers with this node at once: there are no internal topics
// to be created first, as Kafka would do (FX-21), so COORDINATOR_NOT_AVAILABLE does not occur.
func (h *Handler) findCoordinator(req *server.Request) kmsg.Response {
	body := req.Body.(*kmsg.FindCoordinatorRequest)
	resp := kmsg.NewPtrFindCoordinatorResponse()
	resp.SetVersion(req.Version)
	kind := body.CoordinatorType
	if req.Version < 1 {
		kind = coordinatorGroup
	}
	if req.Version < 4 {
		h.answerOneCoordinator(req, kind, body.CoordinatorKey, resp)
		return resp
	}
	host, port := h.self(req.Conn)
	for _, key := range body.CoordinatorKeys {
		c := kmsg.NewFindCoordinatorResponseCoordinator()
		c.Key, c.NodeID, c.Host, c.Port = key, h.NodeID, host, port
		// Kafka sends "" where no error is wrong with the whole request: its schema's default.
		c.ErrorMessage = new(string)
		if err, whole := checkCoordinator(req.Version, kind, key); err != nil {
			c.NodeID, c.Host, c.Port, c.ErrorCode = -1, "", -1, err.Code
			if whole {
				c.ErrorMessage = text(err)
			}
		}
		resp.Coordinators = append(resp.Coordinators, c)
	}
	return resp
}

// answerOneCoordinator is v0 to v3. The message of a success is the word NONE, as in Kafka (Errors.message).
func (h *Handler) answerOneCoordinator(req *server.Request, kind int8, key string, resp *kmsg.FindCoordinatorResponse) {
	if err, _ := checkCoordinator(req.Version, kind, key); err != nil {
		resp.ErrorCode, resp.ErrorMessage = err.Code, text(err)
		resp.NodeID, resp.Port = -1, -1
		return
	}
	resp.ErrorMessage = kmsg.StringPtr("NONE")
	resp.NodeID = h.NodeID
	resp.Host, resp.Port = h.self(req.Conn)
}

// checkCoordinator refuses a coordinator type that the version does not have,
// and a share coordinator's key that is not group:topic id:partition
// (SharePartitionKey). whole says that the type alone makes the request invalid.
func checkCoordinator(version int16, kind int8, key string) (err *kerr.Error, whole bool) {
	switch kind {
	case coordinatorGroup, coordinatorTransaction:
		return nil, false
	case coordinatorShare:
		if version < 6 || !validShareKey(key) {
			return kerr.InvalidRequest, false
		}
		return nil, false
	}
	return kerr.InvalidRequest, true
}

// validShareKey reads the key from its right: a group id may have colons.
func validShareKey(key string) bool {
	i := strings.LastIndexByte(key, ':')
	if i < 0 {
		return false
	}
	if _, err := strconv.ParseInt(key[i+1:], 10, 32); err != nil {
		return false
	}
	group, id, ok := cutLast(key[:i], ':')
	if !ok || strings.TrimSpace(group) == "" {
		return false
	}
	_, err := kafka.ParseTopicID(id)
	return err == nil
}

// cutLast slices s around the last sep.
func cutLast(s string, sep byte) (before, after string, found bool) {
	i := strings.LastIndexByte(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+1:], true
}
