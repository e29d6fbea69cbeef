package scenario

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/conformance/judge"
)

var (
	_ = judge.Register("init-producer-id", initProducerID)
	_ = judge.Register("init-producer-id-transactional", initProducerIDTransactional)
)

func newProducer(id int64, epoch int16, timeout int32) *kmsg.InitProducerIDRequest {
	req := kmsg.NewPtrInitProducerIDRequest()
	req.ProducerID, req.ProducerEpoch, req.TransactionTimeoutMillis = id, epoch, timeout
	return req
}

// initProducerID asks for ids of idempotent producers.
func initProducerID(e *judge.Env) {
	awaitProducerIDs(e)
	topic := e.CreateTopic("t", 1)
	c := e.Conn()
	var last *kmsg.InitProducerIDResponse
	for v := range int16(6) {
		for _, timeout := range []int32{60000, 0, -1, 2147483647} {
			last = c.Do(fmt.Sprintf("v%d timeout %d", v, timeout), v, newProducer(-1, -1, timeout)).(*kmsg.InitProducerIDResponse)
		}
	}
	for v := int16(3); v < 6; v++ {
		c.Do(fmt.Sprintf("v%d own id and epoch", v), v, newProducer(last.ProducerID, last.ProducerEpoch, 60000))
		c.Do(fmt.Sprintf("v%d id alone", v), v, newProducer(last.ProducerID, -1, 60000))
		c.Do(fmt.Sprintf("v%d epoch alone", v), v, newProducer(-1, 0, 60000))
		c.Do(fmt.Sprintf("v%d negative id", v), v, newProducer(-2, 0, 60000))
		c.Do(fmt.Sprintf("v%d negative epoch", v), v, newProducer(1<<59, -2, 60000))
		c.Do(fmt.Sprintf("v%d unknown id", v), v, newProducer(1<<60, 3, 60000))
	}
	c.Do("produce with it", 9, one(-1, topic, judge.Values("a").Idempotent(last.ProducerID, last.ProducerEpoch, 0)))
	c.Do("produce with it again", 9, one(-1, topic, judge.Values("a").Idempotent(last.ProducerID, last.ProducerEpoch, 0)))
	c.Do("the log", 13, fetch(topic, 0))
}

// initProducerIDTransactional asks for transactional ids.
func initProducerIDTransactional(e *judge.Env) {
	awaitTransactions(e)
	c := e.Conn()
	for v := range int16(6) {
		for _, x := range []struct {
			step    string
			id      string
			timeout int32
		}{{"first", e.Name(fmt.Sprint("v", v)), 60000}, {"again", e.Name(fmt.Sprint("v", v)), 60000}, {"empty id", "", 60000},
			{"timeout 0", e.Name("zero"), 0}, {"timeout -1", e.Name("negative"), -1}, {"timeout above transaction.max.timeout.ms", e.Name("long"), 900001}} {
			req := newProducer(-1, -1, x.timeout)
			req.TransactionalID = &x.id
			c.Do(fmt.Sprintf("v%d %s", v, x.step), v, req)
		}
	}
}
