package scenario

import (
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/conformance/judge"
)

var (
	_ = judge.Register("fetch-sessions", fetchSessions)
	_ = judge.Register("fetch-sessions-versions", fetchSessionVersions)
	_ = judge.Register("fetch-sessions-errors", fetchSessionErrors)
	_ = judge.Register("fetch-sessions-order", fetchSessionOrder)
	_ = judge.Register("fetch-sessions-large", fetchSessionLarge)
	_ = judge.Register("fetch-sessions-wait", fetchSessionWait)
)

// inSession makes the request one of a session.
func inSession(id, epoch int32, req *kmsg.FetchRequest) *kmsg.FetchRequest {
	req.SessionID, req.SessionEpoch = id, epoch
	return req
}

// nothing fetches nothing new.
func nothing() *kmsg.FetchRequest {
	req := kmsg.NewPtrFetchRequest()
	req.MaxBytes = 1 << 20
	return req
}

// without removes partitions from the session.
func without(req *kmsg.FetchRequest, topic judge.Topic, partitions ...int32) *kmsg.FetchRequest {
	t := kmsg.NewFetchRequestForgottenTopic()
	t.Topic, t.TopicID, t.Partitions = topic.Name, topic.ID, partitions
	req.ForgottenTopics = append(req.ForgottenTopics, t)
	return req
}

func sessionOf(e *judge.Env, resp kmsg.Response) int32 {
	r, ok := resp.(*kmsg.FetchResponse)
	if !ok {
		e.Fatalf("no response")
	}
	return r.SessionID
}

// fetchSessions is a session's whole life, with names and with ids (KIP-227).
func fetchSessions(e *judge.Env) {
	for _, v := range []int16{7, 12, 13, 18} {
		topic, other := e.CreateTopic(fmt.Sprintf("t%d", v), 3), e.CreateTopic(fmt.Sprintf("u%d", v), 1)
		produced(e, topic, 0, judge.Values("a"), judge.Values("b"))
		c := e.Conn()
		do := func(step string, req *kmsg.FetchRequest) kmsg.Response {
			return c.Do(fmt.Sprintf("v%d %s", v, step), v, req)
		}
		id := sessionOf(e, do("full", inSession(0, 0, fetchPartitions(topic, from(0, 0), from(1, 0)))))
		do("incremental: the records again", inSession(id, 1, nothing()))
		do("incremental: moved on", inSession(id, 2, fetchPartitions(topic, from(0, 2))))
		do("incremental: nothing new", inSession(id, 3, nothing()))
		produced(e, topic, 1, judge.Values("c"))
		do("incremental: something new", inSession(id, 4, nothing()))
		do("incremental: and moved on", inSession(id, 5, fetchPartitions(topic, from(1, 1))))
		do("incremental: another partition", inSession(id, 6, fetchPartitions(topic, from(2, 0))))
		do("incremental: another topic", inSession(id, 7, fetchPartitions(other, from(0, 0))))
		do("incremental: told once", inSession(id, 8, nothing()))
		do("incremental: one partition forgotten", inSession(id, 9, without(nothing(), topic, 1)))
		produced(e, topic, 1, judge.Values("d"))
		do("incremental: it is not told", inSession(id, 10, nothing()))
		do("incremental: added again", inSession(id, 11, fetchPartitions(topic, from(1, 2))))
		do("incremental: one that is not there forgotten", inSession(id, 12, without(nothing(), topic, 77)))
		do("incremental: added and forgotten at once", inSession(id, 13, without(fetchPartitions(topic, from(0, 0)), topic, 0)))
		do("incremental: the same offset again", inSession(id, 14, fetchPartitions(topic, from(2, 0))))
		do("the same epoch again", inSession(id, 14, nothing()))
		do("a future epoch", inSession(id, 99, nothing()))
		do("the session is still there", inSession(id, 15, nothing()))
		do("all forgotten", inSession(id, 16, without(without(nothing(), topic, 0, 1, 2), other, 0)))
		do("and it is gone", inSession(id, 17, nothing()))
		id = sessionOf(e, do("full again", inSession(id, 0, fetchPartitions(topic, from(0, 0)))))
		next := sessionOf(e, do("full again in its place", inSession(id, 0, fetchPartitions(topic, from(0, 2)))))
		do("the one before is gone", inSession(id, 1, nothing()))
		do("the new one is there", inSession(next, 1, nothing()))
		do("closed", inSession(next, -1, fetchPartitions(topic, from(0, 1))))
		do("closed is gone", inSession(next, 2, nothing()))
		do("closed once more", inSession(next, -1, fetchPartitions(topic, from(0, 1))))
	}
}

// fetchSessionVersions asks every version for a session: before v7 there is none, and from v13 on it is one of ids.
func fetchSessionVersions(e *judge.Env) {
	topic := e.CreateTopic("t", 2)
	produced(e, topic, 0, judge.Values("a"))
	c := e.Conn()
	for v := int16(4); v <= 18; v++ {
		id := sessionOf(e, c.Do(fmt.Sprintf("v%d full", v), v, inSession(0, 0, fetchPartitions(topic, from(0, 0), from(1, 0)))))
		c.Do(fmt.Sprintf("v%d incremental", v), v, inSession(id, 1, fetchPartitions(topic, from(0, 1))))
		c.Do(fmt.Sprintf("v%d close", v), v, inSession(id, -1, nothing()))
		c.Do(fmt.Sprintf("v%d no session", v), v, inSession(0, -1, fetchPartitions(topic, from(1, 0))))
	}
	byName := sessionOf(e, c.Do("names", 12, inSession(0, 0, fetchPartitions(topic, from(1, 0)))))
	c.Do("names, then ids", 13, inSession(byName, 1, nothing()))
	c.Do("names, then names", 12, inSession(byName, 1, nothing()))
	c.Do("names, then ids and epoch 0", 13, inSession(byName, 0, fetchPartitions(topic, from(1, 0))))
	byID := sessionOf(e, c.Do("ids", 13, inSession(0, 0, fetchPartitions(topic, from(1, 0)))))
	c.Do("ids, then names", 12, inSession(byID, 1, nothing()))
	c.Do("ids, then names with a wrong epoch", 12, inSession(byID, 9, nothing()))
	c.Do("ids, then ids", 18, inSession(byID, 1, nothing()))
	c.Do("ids, then names and close", 12, inSession(byID, -1, nothing()))
	c.Do("and it is gone", 18, inSession(byID, 2, nothing()))
}

// fetchSessionErrors has sessions that are not there, and partitions that are not there in sessions.
func fetchSessionErrors(e *judge.Env) {
	topic := e.CreateTopic("t", 2)
	unknown := judge.Topic{Name: e.Name("none"), ID: unknownID}
	produced(e, topic, 0, judge.Values("a"))
	c := e.Conn()
	for _, v := range []int16{7, 12, 13, 18} {
		do := func(step string, req *kmsg.FetchRequest) kmsg.Response {
			return c.Do(fmt.Sprintf("v%d %s", v, step), v, req)
		}
		for _, epoch := range []int32{1, 2, 2147483647, -2, -2147483648} {
			do(fmt.Sprintf("session 0, epoch %d", epoch), inSession(0, epoch, fetchPartitions(topic, from(0, 0))))
			do(fmt.Sprintf("unknown session, epoch %d", epoch), inSession(12345, epoch, fetchPartitions(topic, from(0, 0))))
		}
		do("unknown session, epoch 0", inSession(12345, 0, fetchPartitions(topic, from(0, 1))))
		do("unknown session, epoch -1", inSession(12345, -1, fetchPartitions(topic, from(0, 1))))
		do("negative session", inSession(-5, 1, nothing()))
		do("full, and forgotten", inSession(0, 0, without(fetchPartitions(topic, from(0, 1), from(1, 0)), topic, 0)))
		do("no session, and forgotten", inSession(0, -1, without(fetchPartitions(topic, from(0, 1), from(1, 0)), topic, 0)))
		do("full of nothing", inSession(0, 0, nothing()))
		waiting := inSession(12345, 1, nothing())
		waiting.MaxWaitMillis, waiting.MinBytes = 30000, 1
		do("an error does not wait", waiting)
		id := sessionOf(e, do("with errors", inSession(0, 0, andFetch(fetchPartitions(topic, from(0, 9), from(1, 0), from(5, 0)), unknown, from(0, 0)))))
		do("with errors: told again", inSession(id, 1, nothing()))
		do("with errors: mended", inSession(id, 2, fetchPartitions(topic, from(0, 1))))
		do("with errors: told no more", inSession(id, 3, nothing()))
		do("with errors: forgotten", inSession(id, 4, without(without(nothing(), topic, 5), unknown, 0)))
		do("with errors: nothing", inSession(id, 5, nothing()))
		forget := inSession(id, 6, without(nothing(), topic, 1))
		forget = inSession(id, 6, without(forget, unknown, 0))
		do("forget one that is in no session", forget)
		do("twice in a full fetch", inSession(0, 0, fetchPartitions(topic, from(0, 0), from(0, 1), from(1, 0), from(0, 1))))
	}
	late := e.Name("late")
	id := sessionOf(e, c.Do("a topic that comes later", 12, inSession(0, 0, fetchPartitions(judge.Topic{Name: late}, from(0, 0)))))
	made := e.CreateTopic("late", 1)
	produced(e, made, 0, judge.Values("a"))
	c.Do("it has come", 12, inSession(id, 1, nothing()))
	idOf := sessionOf(e, c.Do("a topic that goes", 13, inSession(0, 0, fetchPartitions(made, from(0, 1)))))
	del := kmsg.NewPtrDeleteTopicsRequest()
	del.TopicNames, del.TimeoutMillis = []string{late}, 30000
	e.Quiet(4, del)
	e.AwaitNoTopic(late)
	e.Await("end of the log", func() bool {
		resp := e.Quiet(12, fetchPartitions(judge.Topic{Name: late}, from(0, 1))).(*kmsg.FetchResponse)
		return resp.Topics[0].Partitions[0].ErrorCode == 3
	})
	c.Do("it has gone", 13, inSession(idOf, 1, nothing()))
	c.Do("it has gone, by name", 12, inSession(id, 2, nothing()))
	again := e.CreateTopic("late", 1)
	produced(e, again, 0, judge.Values("b"), judge.Values("c"))
	c.Do("another of its name has come", 13, inSession(idOf, 2, nothing()))
	c.Do("another of its name has come, by name", 12, inSession(id, 3, nothing()))
}

// fetchSessionOrder shows in which order a session's partitions come: those with records go to the end, so that each has its turn.
func fetchSessionOrder(e *judge.Env) {
	topic, other := e.CreateTopic("t", 4), e.CreateTopic("u", 2)
	for p := range int32(4) {
		produced(e, topic, p, judge.Values(fmt.Sprintf("%d-%060d", p, 0)), judge.Values(fmt.Sprintf("%d-%060d", p, 1)))
	}
	produced(e, other, 1, judge.Values("other"))
	c := e.Conn()
	for _, v := range []int16{12, 13} {
		full := andFetch(fetchPartitions(topic, from(2, 0), from(0, 0), from(3, 2), from(1, 0)), other, from(1, 0), from(0, 0))
		id := sessionOf(e, c.Do(fmt.Sprintf("v%d full", v), v, inSession(0, 0, full)))
		for epoch := int32(1); epoch < 6; epoch++ {
			req := inSession(id, epoch, nothing())
			req.MaxBytes = 1
			c.Do(fmt.Sprintf("v%d one batch each: %d", v, epoch), v, req)
		}
		c.Do(fmt.Sprintf("v%d all", v), v, inSession(id, 6, nothing()))
		updated := inSession(id, 7, fetchPartitions(topic, from(1, 1), from(2, 1)))
		c.Do(fmt.Sprintf("v%d updated", v), v, updated)
		c.Do(fmt.Sprintf("v%d forgotten and added again", v), v, inSession(id, 8, without(nothing(), topic, 0)))
		c.Do(fmt.Sprintf("v%d added again", v), v, inSession(id, 9, fetchPartitions(topic, from(0, 1))))
	}
}

// fetchSessionLarge has a session of many partitions, most of which are idle.
func fetchSessionLarge(e *judge.Env) {
	const partitions = 40
	topic := e.CreateTopic("t", partitions)
	c := e.Conn()
	for _, v := range []int16{12, 18} {
		var all []kmsg.FetchRequestTopicPartition
		for p := range int32(partitions) {
			all = append(all, from((p*7+3)%partitions, 0)) // not in order
		}
		do := func(step string, req *kmsg.FetchRequest) kmsg.Response {
			return c.Do(fmt.Sprintf("v%d %s", v, step), v, req)
		}
		id := sessionOf(e, do("full", inSession(0, 0, fetchPartitions(topic, all...))))
		epoch := int32(0)
		next := func(step string, req *kmsg.FetchRequest) {
			epoch++
			do(step, inSession(id, epoch, req))
		}
		next("idle", nothing())
		for _, p := range []int32{30, 5, 17} {
			produced(e, topic, p, judge.Values(fmt.Sprintf("v%d", v)))
		}
		next("three have records", nothing())
		small := nothing()
		small.MaxBytes = 1
		next("room for one", small)
		next("it went to the end", nothing())
		next("two moved on", fetchPartitions(topic, from(5, 9), from(17, 1)))
		next("some forgotten", without(nothing(), topic, 5, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39))
		produced(e, topic, 39, judge.Values("forgotten"))
		produced(e, topic, 38, judge.Values("forgotten"))
		produced(e, topic, 1, judge.Values("known"))
		next("one that is known and two that are not", nothing())
		next("added again", fetchPartitions(topic, from(39, 0), from(38, 0)))
		next("all but one forgotten", without(nothing(), topic, 0, 1, 2, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 39))
		next("the one", nothing())
		topic = e.CreateTopic(fmt.Sprintf("after%d", v), partitions)
	}
}

// fetchSessionWait has incremental fetches wait, be woken, and be overtaken by the next one of their session.
func fetchSessionWait(e *judge.Env) {
	topic := e.CreateTopic("t", 3)
	c := e.Conn()
	waiting := func(id, epoch, millis int32, req *kmsg.FetchRequest) *kmsg.FetchRequest {
		req.MaxWaitMillis, req.MinBytes = millis, 1
		return inSession(id, epoch, req)
	}
	for _, v := range []int16{7, 13} {
		do := func(step string, req *kmsg.FetchRequest) kmsg.Response {
			return c.Do(fmt.Sprintf("v%d %s", v, step), v, req)
		}
		ended := func(step string, req kmsg.Request, by int16, end kmsg.Request) {
			during(e, c, fmt.Sprintf("v%d %s", v, step), v, req, by, end)
		}
		end := e.Quiet(7, offsetsOf(topic, at(1, -1))).(*kmsg.ListOffsetsResponse).Topics[0].Partitions[0].Offset
		id := sessionOf(e, do("full", waiting(0, 0, 100, fetchPartitions(topic, from(0, 0), from(1, end), from(2, 0)))))
		do("waits in vain", waiting(id, 1, 100, nothing()))
		ended("woken", waiting(id, 2, 30_000, nothing()), 13, one1(topic, 1, "a"))
		do("moved on", waiting(id, 3, 100, fetchPartitions(topic, from(1, end+1))))
		ended("overtaken", waiting(id, 4, 1000, nothing()), v, inSession(id, 5, nothing()))
		do("after that", inSession(id, 6, nothing()))
		ended("closed while it waits", waiting(id, 7, 1000, nothing()), v, inSession(id, -1, nothing()))
		do("closed", inSession(id, 8, nothing()))
		took(c, fmt.Sprintf("v%d an error does not end the wait a second time", v), 2*time.Second, func() {
			id := sessionOf(e, do("full with an error", waiting(0, 0, 3000, fetchPartitions(topic, from(0, 5), from(2, 0)))))
			do("incremental with an error", waiting(id, 1, 3000, nothing()))
		})
	}
}
