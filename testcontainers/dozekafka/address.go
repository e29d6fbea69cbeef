package dozekafka

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strconv"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/testcontainers/testcontainers-go"
)

// published is host:port at which a port of the container is reached from outside of Docker.
func published(ctx context.Context, c testcontainers.Container, port string) (string, error) {
	info, err := c.Inspect(ctx)
	if err != nil {
		return "", err
	}
	host, err := c.Host(ctx)
	if err != nil {
		return "", err
	}
	return publishedAt(info, host, containerPort(port))
}

// publishedAt picks the host port among a port's bindings. Docker may bind
// IPv4 and IPv6 to two different host ports, and "localhost" to a client may be either;
// hence an IPv4 one, and 127.0.0.1 rather than localhost.
func publishedAt(info *container.InspectResponse, host string, port network.Port) (string, error) {
	if info.HostConfig != nil && info.HostConfig.NetworkMode.IsHost() {
		return net.JoinHostPort(loopback(host), strconv.Itoa(int(port.Num()))), nil
	}
	if info.NetworkSettings == nil || len(info.NetworkSettings.Ports[port]) == 0 {
		return "", fmt.Errorf("port %s of the container is not published: %w", port, errNotPublished)
	}
	bindings := info.NetworkSettings.Ports[port]
	hostIP, err := netip.ParseAddr(host)
	wants6 := err == nil && hostIP.Is6() && !hostIP.Is4In6()
	fits := func(b network.PortBinding) bool { return !b.HostIP.IsValid() || b.HostIP.Is6() == wants6 }
	i := slices.IndexFunc(bindings, fits)
	if i < 0 { // nothing of its family is bound
		return net.JoinHostPort(host, bindings[0].HostPort), nil
	}
	return net.JoinHostPort(loopback(host), bindings[i].HostPort), nil
}

func loopback(host string) string {
	if host == "localhost" {
		return "127.0.0.1"
	}
	return host
}

// networkHost is how other containers reach this one, "" if they don't.
func networkHost(info *container.InspectResponse) string {
	if info.NetworkSettings == nil {
		return ""
	}
	shortID := info.ID[:min(len(info.ID), 12)]
	var named []string // user-defined networks: they resolve names
	address := ""
	for _, name := range slices.Sorted(maps.Keys(info.NetworkSettings.Networks)) {
		n := info.NetworkSettings.Networks[name]
		switch name {
		case "bridge":
			if n.IPAddress.IsValid() {
				address = n.IPAddress.String()
			}
		case "host", "none":
		default:
			named = append(named, name)
		}
	}
	switch len(named) {
	case 0:
		return address
	case 1:
		for _, alias := range info.NetworkSettings.Networks[named[0]].Aliases {
			if alias != shortID && alias != info.ID {
				return alias
			}
		}
	}
	return shortID
}
