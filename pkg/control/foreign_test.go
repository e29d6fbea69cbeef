package control_test

import (
	"net/http/httptest"
	"strings"
	"testing"
)

// FX-23: a page whose name was rebound to this machine is of the same origin, and changes nothing all the same.
func TestChangesByPagesUnderARebindableNameAreRefused(t *testing.T) {
	for host, want := range map[string]int{
		"evil.example:9080": 403, "evil.example": 403, "EVIL.example.:9080": 403, "127.0.0.1.evil.example:9080": 403, "localhost.evil.example": 403,
		"localhost:9080": 200, "127.0.0.1:9080": 200, "[::1]:9080": 200, "kafka:9080": 200, "kafka.localhost:9080": 200, "laptop.local": 200,
	} {
		for _, header := range [][2]string{{"Origin", "http://" + host}, {"Sec-Fetch-Site", "same-origin"}} {
			e := &endpoints{}
			r := httptest.NewRequest("PUT", "/v1/endpoint", strings.NewReader(`{"endpoint":"a:1"}`))
			r.Host = host
			r.Header.Set(header[0], header[1])
			w := httptest.NewRecorder()
			e.handler().ServeHTTP(w, r)
			if w.Code != want || (e.set != nil) != (want == 200) {
				t.Errorf("%s, %v: %d %s, set is %v", host, header, w.Code, w.Body, e.set)
			}
			if want == 403 && !strings.HasPrefix(w.Body.String(), `{"error":"`) {
				t.Errorf("%s: %s", host, w.Body)
			}
		}
		e := &endpoints{}
		r := httptest.NewRequest("PUT", "/v1/endpoint", strings.NewReader(`{"endpoint":"a:1"}`))
		r.Host = host
		w := httptest.NewRecorder()
		if e.handler().ServeHTTP(w, r); w.Code != 200 {
			t.Errorf("%s, a program: %d %s", host, w.Code, w.Body)
		}
	}
}
