package chaos

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
)

var (
	topicAlreadyExists = kerr.TopicAlreadyExists
	unknownTopic       = kerr.UnknownTopicOrPartition
	invalidPartitions  = kerr.InvalidPartitions
)

// again is the error of an answer. A request that was sent more than once may have been done by an attempt whose answer was lost: done
// are the errors that say so then.
func again(code int16, sent int, done ...*kerr.Error) error {
	if sent > 1 && slices.ContainsFunc(done, func(e *kerr.Error) bool { return e.Code == code }) {
		return nil
	}
	return kerr.ErrorForCode(code)
}
