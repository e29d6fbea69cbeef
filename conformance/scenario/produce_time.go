package scenario

import (
	"fmt"
	"math"

	"github.com/dozekafka/doze-kafka/conformance/judge"
)

var (
	_ = judge.Register("produce-create-time", produceCreateTime)
	_ = judge.Register("produce-log-append-time", produceLogAppendTime)
)

// produceCreateTime: the producer's timestamps, of which the broker computes the largest again, and their limits.
func produceCreateTime(e *judge.Env) {
	c := e.Conn()
	free := e.CreateTopic("free", 1)
	for _, codec := range []int16{0, 1} {
		for _, x := range []struct {
			name string
			max  int64
		}{{"right", judge.Base + 1}, {"too small", 1}, {"too large", math.MaxInt64}, {"-1", -1}} {
			c.Do(fmt.Sprintf("maximum timestamp %s, codec %d", x.name, codec), 8, one(1, free, judge.Values("a", "b").Codec(codec).With(func(b *judge.Batch) { b.MaxTimestamp = x.max })))
		}
		c.Do(fmt.Sprintf("the first is the largest, codec %d", codec), 8, one(1, free,
			judge.Values("a", "b").Codec(codec).With(func(b *judge.Batch) { b.Records[1].TimestampDelta = -7 })))
	}
	for _, hours := range []int{0, 2, 100, -2, -100} {
		c.Do(fmt.Sprintf("now%+dh", hours), 8, one(1, free, judge.Values("a").At(e.Now(hours))))
	}
	c.Do("one of three in the future", 8, one(1, free, threeAt(e.Now(0), 0, 7200_000, 0)))
	c.Do("two of three in the future", 8, one(1, free, threeAt(e.Now(0), 7200_000, 0, 7200_000)))
	c.Do("all of four in the future", 8, one(1, free, judge.Values("a", "b", "c", "d").At(e.Now(2))))
	c.Do("far in the future", 8, one(1, free, judge.Values("a").At(math.MaxInt64)))
	c.Do("-1", 8, one(1, free, judge.Values("a").At(-1)))
	c.Do("least", 8, one(1, free, judge.Values("a").At(math.MinInt64)))
	c.Do("in the future, v7", 7, one(1, free, judge.Values("a").At(e.Now(2))))
	c.Do("in the future, acks=0", 8, one(0, free, judge.Values("a").At(e.Now(2))))
	c.Do("the log", 13, fetch(free, 0))

	limited := e.CreateTopic("limited", 1, "message.timestamp.before.max.ms", "10800000", "message.timestamp.after.max.ms", "18000000")
	for _, hours := range []int{0, 2, 4, 6, -2, -4} {
		c.Do(fmt.Sprintf("limited, now%+dh", hours), 8, one(1, limited, judge.Values("a").At(e.Now(hours))))
	}
	c.Do("limited, the past", 8, one(1, limited, judge.Values("a")))
	c.Do("limited, -1", 8, one(1, limited, judge.Values("a").At(-1)))
	c.Do("limited, one in the past and one in the future", 8, one(1, limited, threeAt(e.Now(0), -5*3600_000, 0, 7*3600_000)))
	c.Do("limited, end", 7, listOffsets(limited, -1))
}

// threeAt has three records at these milliseconds from base.
func threeAt(base int64, deltas ...int64) *judge.Batch {
	b := judge.Values("a", "b", "c").At(base)
	for i, d := range deltas {
		b.Records[i].TimestampDelta = d
	}
	return b
}

// produceLogAppendTime: topics whose records get the broker's time.
func produceLogAppendTime(e *judge.Env) {
	topic := e.CreateTopic("t", 1, "message.timestamp.type", "LogAppendTime")
	c := e.Conn()
	for codec := range int16(5) {
		c.Do(fmt.Sprintf("codec %d", codec), 8, one(1, topic, judge.Values("a", "b").Codec(codec)))
	}
	c.Do("in the future", 8, one(1, topic, judge.Values("a").At(e.Now(100))))
	c.Do("-1", 8, one(1, topic, judge.Values("a").At(-1)))
	c.Do("marked LogAppendTime", 8, one(1, topic, judge.Values("a").With(func(b *judge.Batch) { b.Attributes |= 8 })))
	c.Do("idempotent", 8, one(1, topic, judge.Values("a").Idempotent(10000, 0, 0)))
	c.Do("duplicate", 8, one(1, topic, judge.Values("a").Idempotent(10000, 0, 0)))
	c.Do("gap", 8, one(1, topic, judge.Values("a").Idempotent(10000, 0, 5)))
	c.Do("v3", 3, one(1, topic, judge.Values("a")))
	c.Do("v13", 13, one(-1, topic, judge.Values("a")))
	c.Do("end", 7, listOffsets(topic, -1))
	c.Do("offset of the past", 7, listOffsets(topic, judge.Base))
	c.Do("the log", 13, fetch(topic, 0))

	recoded := e.CreateTopic("recoded", 1, "message.timestamp.type", "LogAppendTime", "compression.type", "zstd")
	c.Do("recoded", 8, one(1, recoded, judge.Values("a", "b")))
	c.Do("recoded log", 13, fetch(recoded, 0))

	created := e.CreateTopic("create-time", 1)
	c.Do("CreateTime: duplicate, first", 8, one(1, created, judge.Values("a").Idempotent(10001, 0, 0)))
	c.Do("CreateTime: duplicate, again", 8, one(1, created, judge.Values("a").Idempotent(10001, 0, 0)))
	c.Do("CreateTime: marked LogAppendTime", 8, one(1, created, judge.Values("a").With(func(b *judge.Batch) { b.Attributes |= 8 })))
	c.Do("CreateTime: marked LogAppendTime, -1", 8, one(1, created, judge.Values("a").At(-1).With(func(b *judge.Batch) { b.Attributes |= 8 })))
	c.Do("CreateTime log", 13, fetch(created, 0))
}
