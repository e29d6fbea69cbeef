package endpoint

import (
	"net"
	"net/netip"
	"runtime"
	"slices"
	"testing"
)

// What the kernel shows of an interface, by kind.
func TestVethsAreToldFromOtherLinkedInterfaces(t *testing.T) {
	for _, test := range []struct {
		name, ifindex, iflink, uevent string
		want                          bool
	}{
		{"veth in a container", "42", "43", "INTERFACE=eth0\nIFINDEX=42", true},
		{"network card", "2", "2", "INTERFACE=eth0\nIFINDEX=2", false},
		{"bridge", "3", "3", "DEVTYPE=bridge\nINTERFACE=docker0\nIFINDEX=3", false},
		{"VLAN", "4", "2", "DEVTYPE=vlan\nINTERFACE=eth0.5\nIFINDEX=4", false},
		{"macvlan", "5", "2", "DEVTYPE=macvlan\nINTERFACE=eth0\nIFINDEX=5", false},
		{"nothing is known", "", "", "", false},
	} {
		files := map[string]string{"ifindex": test.ifindex, "iflink": test.iflink, "uevent": test.uevent}
		read := func(name string) string { return files[name[len("/sys/class/net/eth0/"):]] }
		if got := isVeth(read, "eth0"); got != test.want {
			t.Errorf("%s: veth is %v", test.name, got)
		}
	}
}

func TestGatewaysAreThoseOfDefaultRoutes(t *testing.T) {
	if runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64" {
		t.Skip("the table is in the byte order of the machine that it was taken from")
	}
	files := map[string]string{
		"/proc/net/route": "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n" +
			"eth0\t00000000\t010012AC\t0003\t0\t0\t0\t00000000\t0\t0\t0\n" +
			"eth0\t000012AC\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0\n" +
			"eth1\t000A000A\t0100A8C0\t0003\t0\t0\t0\t00FFFFFF\t0\t0\t0\n" +
			"tun0\t00000000\t00000000\t0001\t0\t0\t0\t00000080\t0\t0\t0\n" +
			"bad\n",
		"/proc/net/ipv6_route": "00000000000000000000000000000000 00 00000000000000000000000000000000 00 fd001800000000000000000000000001 00000400 00000001 00000000 00000003     eth0\n" +
			"fd001800000000000000000000000000 40 00000000000000000000000000000000 00 00000000000000000000000000000000 00000100 00000001 00000000 00000001     eth0\n" +
			"00000000000000000000000000000000 00 00000000000000000000000000000000 00 00000000000000000000000000000000 ffffffff 00000001 00000000 00200200       lo\n",
	}
	got := gateways(func(name string) string { return files[name] })
	want := []netip.Addr{netip.MustParseAddr("172.18.0.1"), netip.MustParseAddr("fd00:1800::1")}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestGatherFindsThisMachinesLoopback(t *testing.T) {
	f, err := Gather()
	if err != nil {
		t.Fatal(err)
	}
	if !gathers {
		return
	}
	found := false
	for _, i := range f.Interfaces {
		for _, p := range i.Prefixes {
			if p.Addr() == netip.MustParseAddr("127.0.0.1") {
				found = !i.Veth && p.Bits() == 8
			}
		}
	}
	if !found {
		t.Errorf("no loopback among %+v", f.Interfaces)
	}
}

func TestPrefixesKeepAddressAndSubnet(t *testing.T) {
	ip, subnet, err := net.ParseCIDR("172.18.0.2/16")
	if err != nil {
		t.Fatal(err)
	}
	subnet.IP = ip // as package net gives them: 16 bytes for an address of 4
	got := prefixes([]net.Addr{subnet, &net.TCPAddr{}})
	if len(got) != 1 || got[0] != netip.MustParsePrefix("172.18.0.2/16") {
		t.Errorf("got %v", got)
	}
}

// The kernel's tables, however odd, are read without a crash.
func FuzzRoutes(f *testing.F) {
	f.Add("eth0\t00000000\t010012AC\t0003\t0\t0\t0\t00000000\t0\t0\t0\n")
	f.Add("00000000000000000000000000000000 00 0 00 fd001800000000000000000000000001 1\n")
	f.Fuzz(func(t *testing.T, table string) {
		for _, gw := range append(routes4(table), routes6(table)...) {
			if gw.IsUnspecified() {
				t.Errorf("gateway %v", gw)
			}
		}
	})
}
