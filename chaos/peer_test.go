package chaos

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/pkg/client"
)

// A peer sends single requests, each until it is answered, over as many connections as that takes.
type peer struct {
	ctx  context.Context // of the whole run
	addr string
	conn *client.Conn
}

// answerWithin is more than any request takes on a slow machine. What is not answered by then counts as lost with its connection.
const answerWithin = 20 * time.Second

// ask returns the answer, and how often the request was sent. It gives up with the run alone.
func ask[R kmsg.Response](p *peer, req kmsg.Request) (resp R, sent int, err error) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		if got, attempted, err := p.try(req); err == nil {
			return got.(R), sent + 1, nil
		} else if attempted {
			sent++
		}
		select {
		case <-tick.C:
		case <-p.ctx.Done():
			return resp, sent, p.ctx.Err()
		}
	}
}

func (p *peer) try(req kmsg.Request) (resp kmsg.Response, attempted bool, err error) {
	ctx, cancel := context.WithTimeout(p.ctx, answerWithin)
	defer cancel()
	if p.conn == nil {
		if p.conn, err = client.Dial(ctx, p.addr, client.Options{}); err != nil {
			p.conn = nil
			return nil, false, err
		}
	}
	if resp, err = p.conn.Do(ctx, req); err != nil {
		_ = p.conn.Close() // it is broken
		p.conn = nil
	}
	return resp, true, err
}

func (p *peer) close() {
	if p.conn != nil {
		_ = p.conn.Close() // nothing is on its way
	}
}

// find is a topic's id and partitions; ok is false if there is none.
func (p *peer) find(name string) (id [16]byte, partitions int, ok bool, err error) {
	req := kmsg.NewPtrMetadataRequest()
	t := kmsg.NewMetadataRequestTopic()
	t.Topic = &name
	req.Topics = append(req.Topics, t)
	resp, _, err := ask[*kmsg.MetadataResponse](p, req)
	if err != nil {
		return id, 0, false, err
	}
	switch got := resp.Topics[0]; got.ErrorCode {
	case 0:
		return got.TopicID, len(got.Partitions), true, nil
	case kerr.UnknownTopicOrPartition.Code:
		return id, 0, false, nil
	default:
		return id, 0, false, kerr.ErrorForCode(got.ErrorCode)
	}
}

// config is a config of a topic that goes by no default.
func (p *peer) config(topic, config string) (string, error) {
	req := kmsg.NewPtrDescribeConfigsRequest()
	r := kmsg.NewDescribeConfigsRequestResource()
	r.ResourceType, r.ResourceName, r.ConfigNames = kmsg.ConfigResourceTypeTopic, topic, []string{config}
	req.Resources = append(req.Resources, r)
	resp, _, err := ask[*kmsg.DescribeConfigsResponse](p, req)
	if err != nil {
		return "", err
	}
	for _, c := range resp.Resources[0].Configs {
		if c.Value != nil {
			return *c.Value, nil
		}
	}
	return "", kerr.ErrorForCode(resp.Resources[0].ErrorCode)
}

// produce sends a batch to one partition.
func (p *peer) produce(topic string, id [16]byte, part int32, acks int16, batch []byte) (offset int64, err error) {
	req := kmsg.NewPtrProduceRequest()
	req.Acks, req.TimeoutMillis = acks, 10_000
	t := kmsg.NewProduceRequestTopic()
	t.Topic, t.TopicID = topic, id
	t.Partitions = append(t.Partitions, kmsg.ProduceRequestTopicPartition{Partition: part, Records: batch})
	req.Topics = append(req.Topics, t)
	resp, _, err := ask[*kmsg.ProduceResponse](p, req)
	if err != nil {
		return 0, err
	}
	got := resp.Topics[0].Partitions[0]
	return got.BaseOffset, kerr.ErrorForCode(got.ErrorCode)
}
