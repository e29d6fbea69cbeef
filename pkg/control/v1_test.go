package control_test

import (
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dozekafka/doze-kafka/pkg/control"
)

// endpoints is a broker's host endpoints, which knows no listener but A.
type endpoints struct{ set map[string]string }

func (e *endpoints) handler() http.Handler {
	return control.New(control.Options{
		HostEndpoints: func() map[string]string { return e.set },
		SetHostEndpoints: func(all map[string]string) error {
			for name := range all {
				if name != "" && name != "A" {
					return errors.New("no listener " + name)
				}
			}
			e.set = all
			return nil
		},
	})
}

func ask(h http.Handler, method, path, body string, header ...string) (int, string) {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Host = "localhost:9080"
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// FX-11: the host endpoints are set by PUT, as a whole, and the same PUT again is no change.
func TestPutEndpointReplacesWhatWasSet(t *testing.T) {
	e := &endpoints{}
	h := e.handler()
	for _, c := range []struct {
		body string
		want map[string]string
	}{
		{`{"endpoint":"127.0.0.1:1"}`, map[string]string{"": "127.0.0.1:1"}},
		{`{"endpoint":"127.0.0.1:1"}`, map[string]string{"": "127.0.0.1:1"}},
		{`{"endpoint":"127.0.0.1:2","listeners":{"A":"a.example:3"}}`, map[string]string{"": "127.0.0.1:2", "A": "a.example:3"}},
		{`{"listeners":{"A":"a.example:3"}}`, map[string]string{"A": "a.example:3"}},
	} {
		code, body := ask(h, "PUT", "/v1/endpoint", c.body)
		if code != 200 || body != c.body+"\n" || !maps.Equal(e.set, c.want) {
			t.Errorf("%s: %d %s, set is %v", c.body, code, body, e.set)
		}
		if code, body := ask(h, "GET", "/v1/endpoint", ""); code != 200 || body != c.body+"\n" {
			t.Errorf("GET after %s: %d %s", c.body, code, body)
		}
	}
}

func TestPutEndpointRefusesWhatItDoesNotKnow(t *testing.T) {
	e := &endpoints{set: map[string]string{"": "kept:1"}}
	h := e.handler()
	for body, want := range map[string]string{
		``:                                    "it is empty",
		`[]`:                                  "it can't be array",
		`{"endpoint":5}`:                      "endpoint can't be number",
		`{"listeners":{"a":"a:1","A":"a:2"}}`: "A is there twice",
		`{}`:                                  `want {\"endpoint\"`,
		`{"endpoint":""}`:                     `want {\"endpoint\"`,
		`{"endpoints":"a:1"}`:                 "unknown field",
		`{"endpoint":"a:1"} {}`:               "goes on after",
		`{"listeners":{"":"a:1"}}`:            "a name is empty",
		`{"listeners":{"B":"b:1"}}`:           "no listener B",
		`{"endpoint":"` + strings.Repeat("a", 1<<17) + `:1"}`: "too large",
	} {
		code, got := ask(h, "PUT", "/v1/endpoint", body)
		if code != 400 || !strings.HasPrefix(got, `{"error":"`) || !strings.Contains(got, want) {
			t.Errorf("%.40s: %d %s", body, code, got)
		}
	}
	if !maps.Equal(e.set, map[string]string{"": "kept:1"}) {
		t.Errorf("a refused PUT has set %v", e.set)
	}
}

// FX-23: a page of another origin changes nothing through the browser of somebody who looks at it.
func TestChangesFromForeignOriginsAreRefused(t *testing.T) {
	e := &endpoints{}
	h := e.handler()
	const body = `{"endpoint":"evil:1"}`
	for _, header := range [][]string{
		{"Sec-Fetch-Site", "cross-site"},
		{"Sec-Fetch-Site", "same-site"},
		{"Origin", "https://evil.example"},
	} {
		if code, _ := ask(h, "PUT", "/v1/endpoint", body, header...); code != 403 || e.set != nil {
			t.Errorf("%v: %d, set is %v", header, code, e.set)
		}
	}
	if code, _ := ask(h, "GET", "/v1/endpoint", "", "Sec-Fetch-Site", "cross-site"); code != 200 {
		t.Errorf("a look from another origin: %d", code)
	}
	if code, _ := ask(h, "PUT", "/v1/endpoint", body, "Sec-Fetch-Site", "same-origin"); code != 200 {
		t.Errorf("a change from the same origin: %d", code)
	}
}

func TestBrokerTellsOfItself(t *testing.T) {
	h := control.New(control.Options{Broker: func() control.Broker {
		return control.Broker{Version: "v1.2.3", ClusterID: "MkU3OEVBNTcwNTJENDM2Qk", NodeID: 1, Listeners: map[string]string{"PLAINTEXT": "[::]:9092"}}
	}})
	want := `{"version":"v1.2.3","clusterId":"MkU3OEVBNTcwNTJENDM2Qk","nodeId":1,"listeners":{"PLAINTEXT":"[::]:9092"}}` + "\n"
	if code, body := ask(h, "GET", "/v1/broker", ""); code != 200 || body != want {
		t.Errorf("%d %s", code, body)
	}
}

// FX-11: any body is answered with 200 or 400.
func FuzzPutEndpoint(f *testing.F) {
	f.Add(`{"endpoint":"127.0.0.1:1","listeners":{"A":"b:2"}}`)
	f.Add(`{"listeners":{"A":null}}`)
	f.Fuzz(func(t *testing.T, body string) {
		e := &endpoints{}
		code, _ := ask(e.handler(), "PUT", "/v1/endpoint", body)
		if (code == 200) != (len(e.set) > 0) || code != 200 && code != 400 {
			t.Errorf("%d, set is %v", code, e.set)
		}
	})
}
