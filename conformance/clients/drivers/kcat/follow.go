package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/dozekafka/doze-kafka/conformance/clients/drivers/wire"
)

// follow turns the output of kcat -G into events, until kcat ends.
func follow(r io.Reader, m *wire.Member) {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		line := lines.Text()
		switch {
		case strings.HasPrefix(line, "{"):
			var record struct {
				Partition    int
				Offset       int64
				Key, Payload string
				Headers      []string
			}
			if err := json.Unmarshal([]byte(line), &record); err != nil {
				m.Closed(fmt.Errorf("%s: %w", line, err))
				return
			}
			var header string
			for i := 0; i+1 < len(record.Headers); i += 2 {
				if record.Headers[i] == "h" {
					header = record.Headers[i+1]
				}
			}
			m.Record(record.Partition, record.Offset, record.Key, record.Payload, header)
		case strings.HasPrefix(line, "% Group") && strings.Contains(line, " rebalanced"):
			rebalanced(line, m)
		case strings.Contains(line, "ERROR"):
			m.Error(errors.New(line))
		default:
			fmt.Fprintln(os.Stderr, line)
		}
	}
	if err := lines.Err(); err != nil {
		m.Closed(err)
	}
}
