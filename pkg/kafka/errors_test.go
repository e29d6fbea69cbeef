package kafka

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
)

func TestErrorCodeSeesThroughWrapping(t *testing.T) {
	for _, c := range []struct {
		err  error
		code int16
	}{
		{nil, 0},
		{kerr.UnknownTopicOrPartition, 3},
		{fmt.Errorf("append to demo-0: %w", kerr.KafkaStorageError), 56},
		{fmt.Errorf("produce: %w", fmt.Errorf("append: %w", kerr.OutOfOrderSequenceNumber)), 45},
		{errors.Join(io.EOF, kerr.NotCoordinator), 16},
		{Errorf(kerr.InvalidConfig, "x"), 40},
		{fmt.Errorf("create: %w", Errorf(kerr.InvalidTopicException, "x")), 17},
		{io.ErrUnexpectedEOF, -1},
		{errors.New(kerr.CorruptMessage.Error()), -1}, // the text alone is no code
	} {
		if got := ErrorCode(c.err); got != c.code {
			t.Errorf("ErrorCode(%v) is %d, want %d", c.err, got, c.code)
		}
	}
}

func TestErrorCodeOfEveryKafkaErrorIsItsOwn(t *testing.T) {
	for code := int16(-1); code < 200; code++ {
		err := kerr.TypedErrorForCode(code)
		if err != nil && err.Code == code && ErrorCode(fmt.Errorf("x: %w", err)) != code {
			t.Errorf("%v has another code", err)
		}
	}
}

func TestErrorMessageIsOnlyThatOfAMessageError(t *testing.T) {
	me := Errorf(kerr.InvalidPartitions, "topic %q has %d", "demo", 0)
	if got, want := me.Error(), `INVALID_PARTITIONS: topic "demo" has 0`; got != want {
		t.Errorf("Error is %q, want %q", got, want)
	}
	for _, err := range []error{me, fmt.Errorf("create: %w", me)} {
		if got := ErrorMessage(err); got == nil || *got != `topic "demo" has 0` {
			t.Errorf("ErrorMessage(%v) is %v", err, got)
		}
		if !errors.Is(err, kerr.InvalidPartitions) {
			t.Errorf("%v is not its kerr value", err)
		}
	}
	for _, err := range []error{nil, io.EOF, kerr.InvalidPartitions} {
		if got := ErrorMessage(err); got != nil {
			t.Errorf("ErrorMessage(%v) is %q", err, *got)
		}
	}
}
