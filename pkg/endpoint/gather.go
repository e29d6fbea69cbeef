package endpoint

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
)

// Gather asks the machine for its network. On systems other than Linux, which
// have no containers of their own, there are no facts.
func Gather() (Facts, error) {
	if !gathers {
		return Facts{}, nil
	}
	interfaces, err := net.Interfaces()
	if err != nil {
		return Facts{}, err
	}
	f := Facts{Kubernetes: os.Getenv("KUBERNETES_SERVICE_HOST") != ""}
	var errs []error
	for _, i := range interfaces {
		addrs, err := i.Addrs()
		if err != nil {
			errs = append(errs, err) // it is gone by now
			continue
		}
		f.Interfaces = append(f.Interfaces, Interface{Name: i.Name, Prefixes: prefixes(addrs), Veth: isVeth(readFile, i.Name)})
	}
	f.Gateways = gateways(readFile)
	return f, errors.Join(errs...)
}

func prefixes(addrs []net.Addr) []netip.Prefix {
	var list []netip.Prefix
	for _, a := range addrs {
		n, ok := a.(*net.IPNet)
		if !ok {
			continue
		}
		ip, ok := netip.AddrFromSlice(n.IP)
		if !ok {
			continue
		}
		ones, _ := n.Mask.Size()
		list = append(list, netip.PrefixFrom(ip.Unmap(), ones))
	}
	return list
}

// isVeth says whether an interface is one end of a veth pair: it is linked to
// an interface of another index, and is none of the kinds that are so too and
// say what they are (VLAN, macvlan, ipvlan).
func isVeth(read reader, name string) bool {
	dir := "/sys/class/net/" + name + "/"
	index, link := read(dir+"ifindex"), read(dir+"iflink")
	return index != "" && link != "" && index != link && !strings.Contains(read(dir+"uevent"), "DEVTYPE=")
}

// gateways are those of the default routes.
func gateways(read reader) []netip.Addr {
	list := routes4(read("/proc/net/route"))
	return append(list, routes6(read("/proc/net/ipv6_route"))...)
}

// routes4 reads the gateways of default routes off /proc/net/route: a heading,
// then lines of interface, destination, gateway, flags ..., addresses in
// hexadecimal of the machine's byte order.
func routes4(table string) []netip.Addr {
	var list []netip.Addr
	for line := range strings.Lines(table) {
		f := strings.Fields(line)
		if len(f) < 8 || f[1] != "00000000" || f[7] != "00000000" {
			continue
		}
		b, err := hex.DecodeString(f[2])
		if err != nil || len(b) != 4 {
			continue
		}
		var a [4]byte
		binary.NativeEndian.PutUint32(a[:], binary.BigEndian.Uint32(b))
		if gw := netip.AddrFrom4(a); !gw.IsUnspecified() {
			list = append(list, gw)
		}
	}
	return list
}

// routes6 reads the gateways of default routes off /proc/net/ipv6_route: lines
// of destination, its length, source, its length, next hop ..., addresses in
// hexadecimal of network order.
func routes6(table string) []netip.Addr {
	var list []netip.Addr
	for line := range strings.Lines(table) {
		f := strings.Fields(line)
		if len(f) < 5 || f[1] != "00" || strings.Trim(f[0], "0") != "" {
			continue
		}
		b, err := hex.DecodeString(f[4])
		if err != nil || len(b) != 16 {
			continue
		}
		if gw := netip.AddrFrom16([16]byte(b)); !gw.IsUnspecified() {
			list = append(list, gw)
		}
	}
	return list
}

// A reader is readFile, or that of a test.
type reader func(name string) string

// tableLimit bounds what is read of a file: the default routes come first, and
// a host that carries the Internet's routes is no container.
const tableLimit = 64 << 10

// readFile is the content of a file of the kernel's without space around it,
// empty if there is none: what can't be known is as if it were not there.
func readFile(name string) string {
	f, err := os.Open(name)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }() // nothing was written
	b, err := io.ReadAll(io.LimitReader(f, tableLimit))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}
