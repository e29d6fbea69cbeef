package handler

import (
	"context"
	"net/netip"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/pkg/server"
)

// parked is the reply of a request that the group coordinator holds until other
// members have done their part. The end of the connection or of the broker ends
// the wait and nothing else: the member stays one until it leaves or its session ends.
func parked[T any](answer <-chan T, abandoned T, response func(T) kmsg.Response) server.Reply {
	var a T
	return server.Reply{
		Wait: func(ctx context.Context) {
			select {
			case a = <-answer:
			case <-ctx.Done():
				a = abandoned
			}
		},
		Response: func() (*server.Response, error) { return &server.Response{Body: response(a)}, nil },
	}
}

// clientHost is the address of a client as DescribeGroups shows it: as Java's
// InetAddress prints one without a name, IPv6 in eight groups (RequestContext.clientAddress).
func clientHost(conn *server.ConnInfo) string {
	addr := addrPort(conn.Remote).Addr().Unmap()
	switch {
	case !addr.IsValid():
		return ""
	case addr.Is4():
		return "/" + addr.String()
	}
	return "/" + ipv6(addr)
}

// ipv6 is an address as Inet6Address prints it: no group is left out, none has zeros in front.
func ipv6(addr netip.Addr) string {
	groups := strings.Split(addr.WithZone("").StringExpanded(), ":")
	for i, g := range groups {
		if g = strings.TrimLeft(g, "0"); g == "" {
			g = "0"
		}
		groups[i] = g
	}
	s := strings.Join(groups, ":")
	if zone := addr.Zone(); zone != "" {
		s += "%" + zone
	}
	return s
}

// orEmpty is a string that a version may not have, or may have null.
func orEmpty(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
