package handler

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/dozekafka/doze-kafka/pkg/kafka"
	"github.com/dozekafka/doze-kafka/pkg/server"
)

func TestCodeLogsWhatHasNone(t *testing.T) {
	for _, c := range []struct {
		err    error
		want   *kerr.Error
		logged bool
	}{
		{nil, nil, false},
		{fmt.Errorf("append: %w", kerr.KafkaStorageError), kerr.KafkaStorageError, false},
		{fmt.Errorf("outer: %w", errors.New("inner")), kerr.UnknownServerError, true},
		{kerr.UnknownServerError, kerr.UnknownServerError, false},
		{fmt.Errorf("wait: %w", context.Canceled), kerr.RequestTimedOut, false},
	} {
		var out bytes.Buffer
		h := New(Deps{Logger: slog.New(slog.NewTextHandler(&out, nil))})
		wantCode(t, h.code(&server.Request{Key: 3, Version: 9, ClientID: "me"}, c.err), c.want)
		if logged := strings.Contains(out.String(), "outer: inner") && strings.Contains(out.String(), "api=Metadata"); logged != c.logged || !c.logged && out.Len() > 0 {
			t.Fatalf("%v: logged %q", c.err, out.String())
		}
	}
}

func TestTextIsNeverMissing(t *testing.T) {
	wantText(t, text(kafka.Errorf(kerr.InvalidConfig, "Unknown topic config name: %s", "x")), "Unknown topic config name: x")
	wantText(t, text(kerr.UnknownTopicOrPartition), "This server does not host this topic-partition.")
	wantText(t, text(errors.New("secret")), kerr.UnknownServerError.Description)
}
