package scenario

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/conformance/judge"
)

var (
	_ = judge.Register("txn-init", txnInit)
	_ = judge.Register("txn-init-states", txnInitStates)
	_ = judge.Register("txn-init-known", txnInitKnown)
)

// initiated is what an InitProducerId gave.
func initiated(p txnProducer, r kmsg.Response) txnProducer {
	if got := r.(*kmsg.InitProducerIDResponse); got.ErrorCode == 0 {
		p.id, p.epoch = got.ProducerID, got.ProducerEpoch
	}
	return p
}

// txnInit asks each version for transactional ids that have no transaction.
func txnInit(e *judge.Env) {
	awaitTransactions(e)
	c := e.Conn()
	for v := range int16(6) {
		name := e.Name(fmt.Sprint("v", v))
		do := func(s string, req *kmsg.InitProducerIDRequest) kmsg.Response {
			return c.Do(fmt.Sprintf("v%d %s", v, s), v, req)
		}
		p := initiated(txnProducer{name: name}, do("new", initTxn(name)))
		c.Do(fmt.Sprintf("v%d described", v), 0, describeTxn(name))
		do("again", initTxn(name))
		do("another timeout", timeout(initTxn(name), 12345))
		c.Do(fmt.Sprintf("v%d described with another timeout", v), 0, describeTxn(name))
		for _, millis := range []int32{0, -1, 1, 900000, 900001} {
			do(fmt.Sprintf("timeout %d", millis), timeout(initTxn(fmt.Sprint(name, "-", millis)), millis))
		}
		do("a timeout too large, existing", timeout(initTxn(name), 900001))
		do("empty", initTxn(""))
		if v < 3 {
			continue
		}
		do("new, with an id and epoch of its own", p.of(name+"-own").init())
		do("new, with a made up id", txnProducer{name + "-made-up", 1 << 60, 3}.init())
		do("id alone", txnProducer{name, p.id, -1}.init())
		do("epoch alone", txnProducer{name, -1, 3}.init())
		do("empty, with id and epoch", p.of("").init())
	}
	v6 := []byte{5, 't', 'x', 'n', '6', 0, 0, 0xea, 0x60, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 0, 0, 0}
	c.Raw("v6, which has keepPreparedTxn", judge.Frame(22, 6, 1, true, v6))
	v6[len(v6)-2] = 1
	c.Raw("v6 with keepPreparedTxn", judge.Frame(22, 6, 2, true, v6))
}

// txnInitKnown asks with an id and epoch that the instance has (KIP-360).
func txnInitKnown(e *judge.Env) {
	awaitTransactions(e)
	topic := e.CreateTopic("t", 1)
	c := e.Conn()
	for v := int16(3); v < 6; v++ {
		do := func(s string, req *kmsg.InitProducerIDRequest) kmsg.Response {
			return c.Do(fmt.Sprintf("v%d %s", v, s), v, req)
		}
		p := newTxn(e, fmt.Sprint("v", v))
		for _, when := range []string{"first", "second"} {
			next := initiated(p, do(when+": current epoch", p.init()))
			do(when+": the same once more", p.init())
			do(when+": and once more", p.init())
			p = next
		}
		do("epoch +1", p.later(1).init())
		do("epoch -2", p.later(-2).init())
		do("another id", p.as(anotherID).init())
		p = initiated(p, do("without", initTxn(p.name)))
		do("the one before", p.later(-1).init())
		for _, end := range []int16{oldEnd, newEnd} {
			for _, commit := range []bool{true, false} {
				p = again(e, p)
				p.opens(e, topic, 0)
				before := p
				s := fmt.Sprintf("after EndTxn v%d, commit %t", end, commit)
				p = p.doEnd(e, c, fmt.Sprintf("v%d %s", v, s), end, commit)
				do(s+": the epoch before", before.init())
				next := initiated(p, do(s+": the epoch after", p.init()))
				do(s+": the epoch after, again", p.init())
				p = initiated(next, do(s+": without", initTxn(p.name)))
			}
		}
	}
}

// txnInitStates asks while there is a transaction.
func txnInitStates(e *judge.Env) {
	awaitTransactions(e)
	topic := e.CreateTopic("t", 2)
	c := e.Conn()
	for v := range int16(6) {
		do := func(s string, req *kmsg.InitProducerIDRequest) kmsg.Response {
			return c.Do(fmt.Sprintf("v%d %s", v, s), v, req)
		}
		describe := func(s string, p txnProducer) { c.Do(fmt.Sprintf("v%d described %s", v, s), 0, describeTxn(p.name)) }
		p := opened(e, fmt.Sprint("v", v), topic, 0, 1)
		describe("ongoing", p)
		do("ongoing", initTxn(p.name))
		awaitComplete(e, p.name)
		describe("aborted", p)
		p = initiated(p, do("aborted", initTxn(p.name)))
		describe("after that", p)
		p.opens(e, topic, 0)
		do("ongoing, with a timeout too large", timeout(initTxn(p.name), 900001))
		describe("still ongoing", p)
		if v >= 3 {
			for _, x := range []struct {
				s    string
				with func(p txnProducer) txnProducer
			}{{"epoch +1", func(p txnProducer) txnProducer { return p.later(1) }}, {"epoch -1", func(p txnProducer) txnProducer { return p.later(-1) }},
				{"another id", func(p txnProducer) txnProducer { return p.as(anotherID) }}, {"its epoch", func(p txnProducer) txnProducer { return p }}} {
				p = again(e, p)
				p.opens(e, topic, 0)
				do("ongoing, "+x.s, x.with(p).init())
				awaitTxn(e, p.name, "Ongoing", "CompleteAbort")
				describe("after ongoing, "+x.s, p)
				do("after ongoing, "+x.s, x.with(p).init())
				awaitTxn(e, p.name, "Ongoing", "Empty", "CompleteAbort")
				do("after ongoing, again "+x.s, x.with(p).init())
				awaitTxn(e, p.name, "Ongoing", "Empty", "CompleteAbort")
				describe("after that, "+x.s, p)
			}
		}
		for _, end := range []int16{oldEnd, newEnd} {
			for _, commit := range []bool{true, false} {
				p = again(e, p)
				p.opens(e, topic, 1)
				s := fmt.Sprintf("after EndTxn v%d, commit %t", end, commit)
				p = p.doEnd(e, c, fmt.Sprintf("v%d %s", v, s), end, commit)
				describe(s, p)
				p = initiated(p, do(s+", again", initTxn(p.name)))
				describe(s+" and again", p)
			}
		}
	}
}
