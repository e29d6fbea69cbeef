//go:build !linux

package server

import "errors"

// canSendfile says whether regions go from file to socket within the kernel.
const canSendfile = false

func (c *conn) sendfile(fd uintptr, offset int64, n int) error { return errors.ErrUnsupported }

func (c *conn) sendMore(b []byte) error { return errors.ErrUnsupported }
