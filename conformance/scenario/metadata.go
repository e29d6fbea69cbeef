package scenario

import (
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/conformance/judge"
	"github.com/dozekafka/doze-kafka/conformance/target"
)

var (
	_ = judge.RegisterOwn("metadata-all", target.Options{}, metadataAll)
	_ = judge.Register("metadata", metadata)
	_ = judge.Register("metadata-auto-create", metadataAutoCreate)
	_ = judge.RegisterOwn("metadata-no-auto-create", target.Options{
		Flags:      []string{"--auto-create-topics=false"},
		Properties: map[string]string{"auto.create.topics.enable": "false"},
	}, metadataNoAutoCreate)
	_ = judge.Register("describe-cluster", describeCluster)
	_ = judge.RegisterOwn("find-coordinator", target.Options{}, findCoordinator)
)

// metadataOf asks for topics by name, and does not create them.
func metadataOf(names ...string) *kmsg.MetadataRequest {
	req := metadataNone()
	for _, name := range names {
		t := kmsg.NewMetadataRequestTopic()
		t.Topic = &name
		req.Topics = append(req.Topics, t)
	}
	return req
}

// metadataByID asks for topics by id.
func metadataByID(ids ...[16]byte) *kmsg.MetadataRequest {
	req := metadataNone()
	for _, id := range ids {
		t := kmsg.NewMetadataRequestTopic()
		t.TopicID = id
		req.Topics = append(req.Topics, t)
	}
	return req
}

func operations(req *kmsg.MetadataRequest) *kmsg.MetadataRequest {
	req.IncludeClusterAuthorizedOperations, req.IncludeTopicAuthorizedOperations = true, true
	return req
}

// metadataAll asks every version for all topics of a broker that has none, and then two.
func metadataAll(e *judge.Env) {
	c := e.Conn()
	all := func(when string) {
		for v := range int16(14) {
			req := kmsg.NewPtrMetadataRequest()
			if v == 0 {
				req.Topics = []kmsg.MetadataRequestTopic{}
			}
			c.Do(fmt.Sprintf("%s, v%d", when, v), v, req, judge.Sorted("Topics"))
			if v > 0 {
				c.Do(fmt.Sprintf("%s, v%d of none", when, v), v, metadataNone())
			}
			if v >= 8 {
				c.Do(fmt.Sprintf("%s, v%d with operations", when, v), v, operations(kmsg.NewPtrMetadataRequest()), judge.Sorted("Topics"))
			}
		}
	}
	all("no topics")
	e.CreateTopic("a", 1)
	e.CreateTopic("b", 3)
	all("two topics")
}

// longName is the longest that a topic may have.
var longName = strings.Repeat("n", 249)

// badNames are those that no topic may have.
var badNames = []string{"", ".", "..", "a b", "a/b", "a:b", "ä", "a\x00b", "a,b", "a*", longName + "n"}

// metadata asks every version for topics by name and by id, that are there and that are not.
func metadata(e *judge.Env) {
	a, b := e.CreateTopic("a", 1), e.CreateTopic("b", 2)
	none := e.Name("none")
	c := e.Conn()
	for v := range int16(14) {
		if v >= 4 { // those before can't say that nothing is to be created
			c.Do(fmt.Sprintf("v%d names", v), v, metadataOf(b.Name, a.Name), judge.Sorted("Topics"))
			c.Do(fmt.Sprintf("v%d known and unknown", v), v, metadataOf(none, a.Name, "a b"), judge.Sorted("Topics"))
			c.Do(fmt.Sprintf("v%d a name twice", v), v, metadataOf(a.Name, none, a.Name, none), judge.Sorted("Topics"))
			c.Do(fmt.Sprintf("v%d with operations", v), v, operations(metadataOf(a.Name, none)), judge.Sorted("Topics"))
			for _, name := range badNames {
				c.Do(fmt.Sprintf("v%d name %.12q of %d bytes", v, name, len(name)), v, metadataOf(name))
			}
		} else {
			c.Do(fmt.Sprintf("v%d names", v), v, metadataOf(b.Name, a.Name), judge.Sorted("Topics"))
			c.Do(fmt.Sprintf("v%d a name twice", v), v, metadataOf(a.Name, a.Name))
		}
		if v < 10 {
			continue
		}
		c.Do(fmt.Sprintf("v%d ids", v), v, metadataByID(b.ID, a.ID), judge.Sorted("Topics"))
		c.Do(fmt.Sprintf("v%d unknown id", v), v, metadataByID(unknownID))
		c.Do(fmt.Sprintf("v%d known and unknown id", v), v, metadataByID(unknownID, a.ID), judge.Sorted("Topics"))
		c.Do(fmt.Sprintf("v%d an id twice", v), v, metadataByID(a.ID, a.ID))
		c.Do(fmt.Sprintf("v%d zero id", v), v, metadataByID([16]byte{}))
		c.Do(fmt.Sprintf("v%d zero id and an id", v), v, metadataByID([16]byte{}, a.ID))
		both := metadataByID(a.ID)
		both.Topics[0].Topic = &a.Name
		c.Do(fmt.Sprintf("v%d id and its name", v), v, both)
		both.Topics[0].Topic = &b.Name
		c.Do(fmt.Sprintf("v%d id and another name", v), v, both)
		mixed := metadataByID(a.ID)
		mixed.Topics = append(mixed.Topics, metadataOf(b.Name).Topics...)
		c.Do(fmt.Sprintf("v%d an id, and a name", v), v, mixed, judge.Sorted("Topics"))
		c.Do(fmt.Sprintf("v%d ids with operations", v), v, operations(metadataByID(a.ID, unknownID)), judge.Sorted("Topics"))
	}
}

// metadataAutoCreate asks for topics that come from being asked for.
func metadataAutoCreate(e *judge.Env) {
	c := e.Conn()
	for v := range int16(14) {
		create := func(names ...string) *kmsg.MetadataRequest {
			req := metadataOf(names...)
			req.AllowAutoTopicCreation = true
			return req
		}
		name := e.Name(fmt.Sprintf("v%d", v))
		c.Do(fmt.Sprintf("v%d created", v), v, create(name))
		e.AwaitTopic(name, 1)
		c.Do(fmt.Sprintf("v%d is there", v), v, create(name))
		c.Do(fmt.Sprintf("v%d invalid names", v), v, create("a b", ".", longName+"n"), judge.Sorted("Topics"))
		if v >= 4 {
			c.Do(fmt.Sprintf("v%d not created", v), v, metadataOf(e.Name("none")))
		}
	}
	create := func(names ...string) *kmsg.MetadataRequest {
		req := metadataOf(names...)
		req.AllowAutoTopicCreation = true
		return req
	}
	two := []string{e.Name("two-b"), e.Name("two-a")}
	c.Do("two at once, and an invalid one", 9, create(two[0], "a b", two[1]), judge.Sorted("Topics"))
	e.AwaitTopic(two[0], 1)
	e.AwaitTopic(two[1], 1)
	c.Do("two are there", 9, create(two...), judge.Sorted("Topics"))
	dotted := e.CreateTopic("dots.and.dots", 1)
	c.Do("a name that collides", 9, create(strings.ReplaceAll(dotted.Name, ".", "_")))
	c.Do("the name that was there", 9, create(dotted.Name))
	long := e.Name(longName)[:249]
	c.Do("the longest name", 9, create(long))
	e.AwaitTopic(long, 1)
	c.Do("__ is no bar to a name", 9, create("__"+e.Name("x")))
	e.AwaitTopic("__"+e.Name("x"), 1)
	c.Do("it is not internal", 9, create("__"+e.Name("x")))
	byID := metadataByID(unknownID)
	byID.AllowAutoTopicCreation = true
	c.Do("by id", 12, byID)
	c.Do("a name of the cluster's metadata", 9, create("__cluster_metadata"))
}

// metadataNoAutoCreate is the same on a broker that does not allow it.
func metadataNoAutoCreate(e *judge.Env) {
	c := e.Conn()
	for v := range int16(14) {
		req := metadataOf(e.Name("none"))
		req.AllowAutoTopicCreation = true
		c.Do(fmt.Sprintf("v%d", v), v, req)
	}
	req := metadataOf("a b", e.Name("none"))
	req.AllowAutoTopicCreation = true
	c.Do("an invalid name", 9, req, judge.Sorted("Topics"))
}

// describeCluster asks every version for brokers, controllers and what is neither.
func describeCluster(e *judge.Env) {
	c := e.Conn()
	for v := range int16(3) {
		for _, endpoints := range []int8{1, 2, 0, 3, -1} {
			for _, fenced := range []bool{false, true} {
				for _, ops := range []bool{false, true} {
					if v < 2 && fenced || v < 1 && endpoints != 1 {
						continue
					}
					req := kmsg.NewPtrDescribeClusterRequest()
					req.EndpointType, req.IncludeFencedBrokers, req.IncludeClusterAuthorizedOperations = endpoints, fenced, ops
					c.Do(fmt.Sprintf("v%d endpoint type %d, fenced %v, operations %v", v, endpoints, fenced, ops), v, req)
				}
			}
		}
	}
}

// findCoordinator asks every version for the coordinator of each kind of key, of one and of several.
func findCoordinator(e *judge.Env) {
	find := func(kind int8, keys ...string) *kmsg.FindCoordinatorRequest {
		req := kmsg.NewPtrFindCoordinatorRequest()
		req.CoordinatorType, req.CoordinatorKeys = kind, keys
		if len(keys) > 0 {
			req.CoordinatorKey = keys[0]
		}
		return req
	}
	c := e.Conn()
	c.Do("the first group", 6, find(0, "g"))
	c.Do("the first transactional id", 6, find(1, "t"))
	for kind := range int8(2) {
		e.Await("internal topic", func() bool {
			return e.Quiet(6, find(kind, "x")).(*kmsg.FindCoordinatorResponse).Coordinators[0].ErrorCode == 0
		})
	}
	for v := range int16(7) {
		for _, kind := range []int8{0, 1, 3, -1} {
			if v == 0 && kind != 0 {
				continue
			}
			c.Do(fmt.Sprintf("v%d type %d", v, kind), v, find(kind, "g"))
			c.Do(fmt.Sprintf("v%d type %d, empty key", v, kind), v, find(kind, ""))
		}
		if v >= 4 {
			c.Do(fmt.Sprintf("v%d no keys", v), v, find(0))
			c.Do(fmt.Sprintf("v%d many keys", v), v, find(0, "z", "a", "m", "a", "ä", strings.Repeat("k", 2000)))
			c.Do(fmt.Sprintf("v%d many transactional ids", v), v, find(1, "z", "a", "m", "a"))
		}
		if v < 6 {
			c.Do(fmt.Sprintf("v%d share group", v), v, find(2, "g:AAAAAAAAAAAAAAAAAAAAAA:0"))
		}
	}
	c.Do("v6 share groups, malformed keys", 6, find(2, "g", "", "g:x:0", "g:AAAAAAAAAAAAAAAAAAAAAA:x"))
}
