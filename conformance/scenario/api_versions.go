package scenario

import (
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/conformance/judge"
)

var (
	_ = judge.Register("api-versions", apiVersions)
	_ = judge.Register("api-versions-software", apiVersionsSoftware)
	_ = judge.Register("api-versions-cluster", apiVersionsCluster)
)

func software(name, version string) *kmsg.ApiVersionsRequest {
	req := kmsg.NewPtrApiVersionsRequest()
	req.ClientSoftwareName, req.ClientSoftwareVersion = name, version
	return req
}

// apiVersions asks every version, and those that are not there: their answer is of version 0, byte by byte.
func apiVersions(e *judge.Env) {
	c := e.Conn()
	for v := range int16(6) {
		c.Do(fmt.Sprintf("v%d", v), v, software("judge", "1.0"))
	}
	for _, v := range []int16{6, 7, 100, 32767, -1, -32768} {
		c.Do(fmt.Sprintf("v%d is not there", v), v, software("judge", "1.0"), judge.AnsweredAs(0), judge.Bytes())
	}
	c.Raw("v6 with a body that no version has", judge.Frame(18, 6, 1, true, []byte{0xff, 0xff, 0xff}))
	c.Raw("v6 without a body", judge.Frame(18, 6, 2, false, nil))
	c.Do("v3 after all that", 3, software("judge", "1.0"))
	c.Pipeline("pipelined", 0, software("", ""), software("", ""), software("", ""))
}

// apiVersionsSoftware asks with names and versions of client software that are right and wrong (KIP-511).
func apiVersionsSoftware(e *judge.Env) {
	c := e.Conn()
	for _, name := range []string{"", "a", "A9", "-a", "a-", ".a", "a.", "a-.b", "a_b", "a b", "ä", "franz-go", strings.Repeat("x", 300)} {
		step := fmt.Sprintf("%.20q", name)
		c.Do("name "+step, 3, software(name, "1"), judge.Sorted())
		c.Do("version "+step, 3, software("judge", name))
	}
	c.Do("name and version wrong, v4", 4, software("", ""))
	c.Do("name wrong, v5", 5, software("-", "1"))
	c.Do("no name is asked for in v2", 2, software("", ""))
	c.Do("a right one after all that", 3, software("judge", "1"))
	c.Raw("truncated", judge.Frame(18, 3, 7, true, []byte{6, 'j', 'u'}))
	c.Raw("null name", judge.Frame(18, 3, 8, true, []byte{0, 2, '1', 0}))
	c.Raw("not UTF-8", judge.Frame(18, 3, 9, true, []byte{2, 0xff, 2, '1', 0}))
}

// apiVersionsCluster asks v5, in which a client says where it believes to be (KIP-1242).
func apiVersionsCluster(e *judge.Env) {
	c := e.Conn()
	clusterID := e.Quiet(9, kmsg.NewPtrMetadataRequest()).(*kmsg.MetadataResponse).ClusterID
	wrong := "AAAAAAAAAAAAAAAAAAAAAA"
	for _, x := range []struct {
		step    string
		cluster *string
		node    int32
	}{
		{"right cluster and node", clusterID, 1},
		{"wrong cluster", &wrong, 1},
		{"wrong node", clusterID, 2},
		{"both wrong", &wrong, 2},
		{"cluster alone", clusterID, -1},
		{"wrong cluster alone", &wrong, -1},
		{"node alone", nil, 1},
		{"wrong node alone", nil, 7},
		{"neither", nil, -1},
		{"node -2", nil, -2},
		{"node -2 and right cluster", clusterID, -2},
		{"empty cluster", kmsg.StringPtr(""), 1},
		{"empty cluster alone", kmsg.StringPtr(""), -1},
	} {
		req := software("judge", "1")
		req.ClusterID, req.NodeID = x.cluster, x.node
		c.Do(x.step, 5, req)
	}
	req := software("-", "1")
	req.ClusterID, req.NodeID = &wrong, 1
	c.Do("wrong cluster and wrong name", 5, req)
}
