package config

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
)

// Auto is the value of ADVERTISED_LISTENERS that lets package endpoint choose.
const Auto = "auto"

// A Listener is one address in Kafka's syntax, NAME://host:port.
type Listener struct {
	Name string // in capitals
	Host string // "" for all interfaces, if it is one to listen on; without the brackets of IPv6
	Port int    // 0 takes a free port, if it is one to listen on
}

// String is Kafka's syntax.
func (l Listener) String() string {
	return l.Name + "://" + l.Address()
}

// Address is the part that package net listens on.
func (l Listener) Address() string {
	return net.JoinHostPort(l.Host, strconv.Itoa(l.Port))
}

// ParseListeners reads LISTENERS. Empty items are ignored (FX-12). Names are
// in capitals and used once; the names that mean TLS or SASL in Kafka are refused,
// since what would listen there is plaintext.
func ParseListeners(v string) ([]Listener, error) {
	all, err := parseListenerList(v)
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, errors.New("no listener")
	}
	for i, l := range all {
		if slices.Contains([]string{"SSL", "SASL_PLAINTEXT", "SASL_SSL"}, l.Name) {
			return nil, fmt.Errorf("%s: TLS and SASL are not supported", l.Name)
		}
		for _, other := range all[:i] {
			if other.Port == l.Port && l.Port != 0 && other.Host == l.Host {
				return nil, fmt.Errorf("%s and %s have the same address", other.Name, l.Name)
			}
		}
	}
	return all, nil
}

// ParseAdvertised reads ADVERTISED_LISTENERS; nil for auto.
func ParseAdvertised(v string) ([]Listener, error) {
	if v == Auto || v == "" {
		return nil, nil
	}
	all, err := parseListenerList(v)
	if err != nil {
		return nil, err
	}
	for _, l := range all {
		if ip := net.ParseIP(l.Host); l.Host == "" || ip != nil && ip.IsUnspecified() {
			return nil, fmt.Errorf("%s: clients can't connect to the host %q", l.Name, l.Host)
		}
		if l.Port == 0 {
			return nil, fmt.Errorf("%s: port 0 can't be told to clients", l.Name)
		}
	}
	return all, nil
}

func parseListenerList(v string) ([]Listener, error) {
	var all []Listener
	for item := range strings.SplitSeq(v, ",") {
		if item = strings.TrimSpace(item); item == "" {
			continue
		}
		name, address, ok := strings.Cut(item, "://")
		if !ok || name == "" {
			return nil, fmt.Errorf("%q is not NAME://host:port", item)
		}
		host, port, err := net.SplitHostPort(address)
		if err != nil {
			return nil, fmt.Errorf("%q is not NAME://host:port", item)
		}
		if err := checkPort(port, false); err != nil {
			return nil, fmt.Errorf("%q: %w", item, err)
		}
		if i := strings.IndexFunc(name, notIn("-._")); i >= 0 {
			return nil, fmt.Errorf("%q: the name has %q in it", item, name[i:i+1])
		}
		if err := checkHost(host); err != nil {
			return nil, fmt.Errorf("%q: %w", item, err)
		}
		n, _ := strconv.Atoi(port) // checked above
		l := Listener{Name: strings.ToUpper(name), Host: host, Port: n}
		if slices.ContainsFunc(all, func(o Listener) bool { return o.Name == l.Name }) {
			return nil, fmt.Errorf("the name %s is used twice", l.Name)
		}
		all = append(all, l)
	}
	return all, nil
}

// maxHost is the length of the longest host, in bytes: DNS has no longer names. Clients are told it in a string
// whose length is 16 bits in most versions.
const maxHost = 255

// checkHost accepts names and addresses, and the empty host.
func checkHost(host string) error {
	if len(host) > maxHost {
		return fmt.Errorf("the host has %d characters, want no more than %d", len(host), maxHost)
	}
	if i := strings.IndexFunc(host, notIn("-._:%")); i >= 0 {
		return fmt.Errorf("the host has %q in it", string([]rune(host[i:])[0]))
	}
	return nil
}

// ParseHostPort reads host:port as clients connect to it: neither is empty or a wildcard.
func ParseHostPort(v string) (host string, port int32, err error) {
	if err := checkHostPort(v, true); err != nil {
		return "", 0, err
	}
	host, text, err := net.SplitHostPort(v)
	if err != nil {
		return "", 0, err
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		return "", 0, fmt.Errorf("clients can't connect to the host %q", host)
	}
	n, err := strconv.ParseUint(text, 10, 16)
	return host, int32(n), err
}

// notIn says of a character whether it is no letter, no digit and none of
// others (for hosts as Kafka has it: SocketServerConfigs' pattern of a listener).
func notIn(others string) func(rune) bool {
	return func(r rune) bool {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		return !letter && !strings.ContainsRune(others, r)
	}
}

// advertisedProblem checks ADVERTISED_LISTENERS against the listeners.
func (s *Settings) advertisedProblem(listeners []Listener) error {
	advertised, err := ParseAdvertised(s.AdvertisedListeners)
	if err != nil {
		return err
	}
	for _, a := range advertised {
		known := func(l Listener) bool { return l.Name == a.Name }
		if len(listeners) > 0 && !slices.ContainsFunc(listeners, known) {
			return fmt.Errorf("no listener has the name %s", a.Name)
		}
	}
	return nil
}
