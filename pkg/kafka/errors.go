package kafka

import (
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
)

// ErrorCode is the code that a client gets for err: 0 for nil, the code of the
// kerr value that err is or wraps, and UNKNOWN_SERVER_ERROR for anything else.
// It is the only place where an error becomes a code.
func ErrorCode(err error) int16 {
	if err == nil {
		return 0
	}
	if ke, ok := errors.AsType[*kerr.Error](err); ok {
		return ke.Code
	}
	return kerr.UnknownServerError.Code
}

// ErrorMessage is the text of the MessageError that err is or wraps, or nil:
// Kafka sends no text with an error that has none of its own, and the client
// shows its default.
func ErrorMessage(err error) *string {
	if me, ok := errors.AsType[*MessageError](err); ok {
		return &me.Message
	}
	return nil
}

// A MessageError is a Kafka error with a text of its own for the client.
type MessageError struct {
	Err     *kerr.Error
	Message string
}

// Errorf makes a MessageError with the code of err.
func Errorf(err *kerr.Error, format string, args ...any) *MessageError {
	return &MessageError{Err: err, Message: fmt.Sprintf(format, args...)}
}

// Error is the code's name and the text.
func (e *MessageError) Error() string { return e.Err.Message + ": " + e.Message }

// Unwrap returns the kerr value, so that ErrorCode and errors.Is see it.
func (e *MessageError) Unwrap() error { return e.Err }
