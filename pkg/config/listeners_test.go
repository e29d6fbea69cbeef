package config

import (
	"fmt"
	"testing"
)

// FX-12: Kafka's syntax; empty items are ignored.
func TestParseListeners(t *testing.T) {
	for in, want := range map[string]string{
		"PLAINTEXT://127.0.0.1:9092":     "[PLAINTEXT://127.0.0.1:9092]",
		",in://:0,, OUT://[::1]:19092 ,": "[IN://:0 OUT://[::1]:19092]",
		"":                               "no listener",
		"127.0.0.1:9092":                 `"127.0.0.1:9092" is not NAME://host:port`,
		"A://h":                          `"A://h" is not NAME://host:port`,
		"A://h:70000":                    `"A://h:70000": port "70000" is not a number from 0 to 65535`,
		"A://h:1,a://h:2":                "the name A is used twice",
		"A://h:1,B://h:1":                "A and B have the same address",
		"SASL_SSL://h:1":                 "SASL_SSL: TLS and SASL are not supported",
		"A://[fe80::1%eth0]:1":           "[A://[fe80::1%eth0]:1]",
		"A://my_host-1.example:1":        "[A://my_host-1.example:1]",
		"A://a b:1":                      `"A://a b:1": the host has " " in it`,
		"A B://h:1":                      `"A B://h:1": the name has " " in it`,
		"A://user@h:1":                   `"A://user@h:1": the host has "@" in it`,
	} {
		l, err := ParseListeners(in)
		got := fmt.Sprint(l)
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
	}
}

func TestAdvertisedNamesAreListeners(t *testing.T) {
	s := Default()
	s.AdvertisedListeners = "OTHER://h:1"
	if err := s.Validate(); err == nil || err.Error() != "ADVERTISED_LISTENERS: no listener has the name OTHER" {
		t.Error(err)
	}
}
