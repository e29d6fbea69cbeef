package config

import (
	"cmp"
	"fmt"
	"net"
	"slices"
	"strings"
)

// listeners makes LISTENERS and ADVERTISED_LISTENERS of Kafka's properties
// (FX-12). A controller's listener is not opened, as there is no controller to
// talk to, nor is one with TLS or SASL, which is warned of. Without listeners, they are those
// advertised, on all interfaces, as Apache's image has it.
func (g *kafkaGiven) listeners(byName map[string]property, used map[string]bool) {
	get := func(name string) property {
		used[name] = true
		return byName[name]
	}
	k := kafkaListeners{
		controllers: splitList(strings.ToUpper(get("controller.listener.names").value)),
		protocols:   map[string]string{},
		secured:     map[string]string{},
	}
	if k.controllers == nil {
		k.controllers = []string{"CONTROLLER"} // as everybody calls it
	}
	for _, item := range splitList(get("listener.security.protocol.map").value) {
		name, protocol, _ := strings.Cut(item, ":")
		k.protocols[strings.ToUpper(strings.TrimSpace(name))] = strings.ToUpper(strings.TrimSpace(protocol))
	}
	listeners, advertised := get("listeners"), get("advertised.listeners")
	host, port := get("advertised.host.name"), get("advertised.port")
	get("host.name")
	get("port")
	if listeners.value == "" && advertised.value == "" && host.value != "" { // of before advertised.listeners
		advertised = property{value: "PLAINTEXT://" + net.JoinHostPort(host.value, cmp.Or(port.value, "9092")), by: host.by}
	}
	if listeners.value == "" {
		listeners = property{value: onAllInterfaces(advertised.value), by: advertised.by}
	}
	opened := k.plaintext(listeners.value)
	if len(opened) > 0 {
		g.settings["LISTENERS"] = givenValue{listeners.by, strings.Join(opened, ",")}
	}
	var told []string
	for _, item := range k.plaintext(advertised.value) {
		if _, address, _ := strings.Cut(item, "://"); !wildcard(address) {
			told = append(told, item)
		}
	}
	if len(told) > 0 {
		g.settings["ADVERTISED_LISTENERS"] = givenValue{advertised.by, strings.Join(told, ",")}
	}
	g.secured(k, listeners, len(opened) == 0)
}

// secured tells of the listeners that are not plaintext: a warning, or a mistake if there are no others.
func (g *kafkaGiven) secured(k kafkaListeners, listeners property, none bool) {
	if len(k.secured) == 0 {
		return
	}
	var names []string
	for name, protocol := range k.secured {
		names = append(names, name+" ("+protocol+")")
	}
	slices.Sort(names)
	text := fmt.Sprintf("%s=%s: TLS and SASL are not supported, not opened: %s", listeners.by, listeners.value, strings.Join(names, ", "))
	if none {
		g.mistakes = append(g.mistakes, fmt.Errorf("%s; want a listener whose protocol is PLAINTEXT", text))
		return
	}
	g.warnings = append(g.warnings, text)
}

// kafkaListeners is what is known of listeners by their names.
type kafkaListeners struct {
	controllers []string
	protocols   map[string]string // by name, as in listener.security.protocol.map
	secured     map[string]string // those met that are not plaintext
}

// plaintext are the items of a list of listeners that this broker opens.
func (k *kafkaListeners) plaintext(list string) []string {
	var all []string
	for _, item := range splitList(list) {
		name, _, _ := strings.Cut(item, "://")
		name = strings.ToUpper(name)
		if slices.Contains(k.controllers, name) {
			continue
		}
		protocol := cmp.Or(k.protocols[name], name)
		if protocol == "SSL" || strings.HasPrefix(protocol, "SASL_") {
			k.secured[name] = protocol
			continue
		}
		all = append(all, item)
	}
	return all
}

// onAllInterfaces is a list of listeners with their hosts left out.
func onAllInterfaces(list string) string {
	var all []string
	for _, item := range splitList(list) {
		name, address, _ := strings.Cut(item, "://")
		if i := strings.LastIndexByte(address, ':'); i >= 0 {
			address = "0.0.0.0" + address[i:]
		}
		all = append(all, name+"://"+address)
	}
	return strings.Join(all, ",")
}

// wildcard says of host:port whether no client could connect to the host.
func wildcard(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false // a mistake, which is told as one of the setting's
	}
	ip := net.ParseIP(host)
	return host == "" || ip != nil && ip.IsUnspecified()
}

// splitList are the items of a list, without empty ones.
func splitList(v string) []string {
	var all []string
	for item := range strings.SplitSeq(v, ",") {
		if item = strings.TrimSpace(item); item != "" {
			all = append(all, item)
		}
	}
	return all
}
