package handler

import (
	"context"
	"regexp"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/pkg/server"
)

// features are those of Kafka's that exist here, with the supported ranges of
// Kafka 4.4.0, as it was recorded; the greatest level is the finalized one, as there (Feature, MetadataVersion
// from 3.3-IV3; with transaction.version 2 clients leave out AddPartitionsToTxn and AddOffsetsToTxn, KIP-890).
var features = []struct {
	name     string
	min, max int16
}{
	{"metadata.version", 7, 33},
	{"transaction.version", 0, 2},
}

// softwareName is what a client may call itself and its version (KIP-511, ApiVersionsRequest.isValid).
var softwareName = regexp.MustCompile(`^[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?$`)

// apiVersions tells what is spoken (KIP-35). Its response header never has
// tags, and a version that is not known is answered in v0: the client does not
// know yet what it may send.
func (h *Handler) apiVersions(_ context.Context, req *server.Request) server.Reply {
	resp := kmsg.NewPtrApiVersionsResponse()
	body, ok := req.Body.(*kmsg.ApiVersionsRequest)
	if !ok {
		h.answerUnknownVersion(resp)
	} else {
		h.answerApiVersions(req, body, resp)
	}
	return server.Reply{Response: func() (*server.Response, error) {
		return &server.Response{Body: resp, HeaderV0: true}, nil
	}}
}

// answerUnknownVersion names the versions of ApiVersions itself, in v0.
func (h *Handler) answerUnknownVersion(resp *kmsg.ApiVersionsResponse) {
	own := h.byKey[kmsg.ApiVersions.Int16()].spec
	resp.ErrorCode = kerr.UnsupportedVersion.Code
	resp.ApiKeys = []kmsg.ApiVersionsResponseApiKey{{ApiKey: own.Key, MinVersion: own.AdvertMin, MaxVersion: own.Max}}
}

func (h *Handler) answerApiVersions(req *server.Request, body *kmsg.ApiVersionsRequest, resp *kmsg.ApiVersionsResponse) {
	resp.SetVersion(req.Version)
	if !validClient(body) {
		resp.ErrorCode = kerr.InvalidRequest.Code
		return
	}
	// KIP-1242: a client that comes back to an address may meet another cluster there.
	if req.Version >= 5 && body.ClusterID != nil && (*body.ClusterID != h.ClusterID || body.NodeID != h.NodeID) {
		resp.ErrorCode = kerr.RebootstrapRequired.Code
		return
	}
	if req.Version >= 3 {
		req.Conn.SoftwareName = strings.Clone(body.ClientSoftwareName)
		req.Conn.SoftwareVersion = strings.Clone(body.ClientSoftwareVersion)
	}
	for _, a := range h.byKey {
		if a.start == nil {
			continue
		}
		key := kmsg.NewApiVersionsResponseApiKey()
		key.ApiKey, key.MinVersion, key.MaxVersion = a.spec.Key, a.spec.AdvertMin, a.spec.Max
		resp.ApiKeys = append(resp.ApiKeys, key)
	}
	h.answerFeatures(resp)
}

// answerFeatures tells the features (tagged, so v3 and later send them). The
// epoch of the finalized ones grows with each start: they can change in no
// other way. (Kafka's is the offset of its last metadata record.)
func (h *Handler) answerFeatures(resp *kmsg.ApiVersionsResponse) {
	for _, f := range features {
		finalized := kmsg.NewApiVersionsResponseFinalizedFeature()
		finalized.Name, finalized.MinVersionLevel, finalized.MaxVersionLevel = f.name, f.max, f.max
		resp.FinalizedFeatures = append(resp.FinalizedFeatures, finalized)
		if f.min == 0 && resp.GetVersion() < 4 {
			continue // a range from 0 is told from v4 on (ApiVersionsResponse.maybeFilterSupportedFeatureKeys)
		}
		supported := kmsg.NewApiVersionsResponseSupportedFeature()
		supported.Name, supported.MinVersion, supported.MaxVersion = f.name, f.min, f.max
		resp.SupportedFeatures = append(resp.SupportedFeatures, supported)
	}
	resp.FinalizedFeaturesEpoch = int64(h.Epoch)
}

// validClient is ApiVersionsRequest.isValid: the software's name and version
// are of letters, digits, dots and dashes, and v5 has both of cluster and node id, or neither.
func validClient(body *kmsg.ApiVersionsRequest) bool {
	if body.Version >= 5 && (body.ClusterID == nil) != (body.NodeID == -1) {
		return false
	}
	return body.Version < 3 ||
		softwareName.MatchString(body.ClientSoftwareName) && softwareName.MatchString(body.ClientSoftwareVersion)
}
