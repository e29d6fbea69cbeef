package client

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// CheckID is the client.id of Check: a check asks for the broker's address
// over and over, and never goes there.
const CheckID = "doze-kafka-healthcheck"

// Check says whether a broker answers at addr: it makes a round trip of
// ApiVersions and one of Metadata, as every client's start does (FX-22). Its client.id is CheckID.
func Check(ctx context.Context, addr string, opts Options) (err error) {
	opts.ClientID = CheckID
	c, err := Dial(ctx, addr, opts)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	req := kmsg.NewPtrMetadataRequest()
	req.Topics = []kmsg.MetadataRequestTopic{} // none; null would be all
	resp, err := c.Do(ctx, req)
	if err != nil {
		return err
	}
	meta := resp.(*kmsg.MetadataResponse)
	if len(meta.Brokers) == 0 {
		return fmt.Errorf("%s: Metadata names no broker", addr)
	}
	return nil
}
