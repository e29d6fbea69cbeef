package control

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// refuseForeignPages answers 403 to a request that changes something and
// comes from a web page of another origin (FX-23). A page can also make its own name lead to this
// machine after it was loaded (DNS rebinding), and is of the same origin then: so what a page asks for under a name that
// anybody on the Internet may own is refused too. Programs send no origin, and are let through under every name.
func refuseForeignPages(h http.Handler) http.Handler {
	protection := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := protection.Check(r); err != nil {
			reply(w, http.StatusForbidden, map[string]string{"error": "a web page of another origin can't change anything here: " + err.Error()})
			return
		}
		if changes(r.Method) && byPage(r) && !localName(r.Host) {
			reply(w, http.StatusForbidden, map[string]string{"error": "a web page can't change anything here under the name " + r.Host + ": use localhost or an IP address"})
			return
		}
		h.ServeHTTP(w, r)
	})
}

func changes(method string) bool {
	return !slices.Contains([]string{http.MethodGet, http.MethodHead, http.MethodOptions}, method)
}

// byPage says whether a browser asks: each sends the origin of the page with what changes something.
func byPage(r *http.Request) bool {
	return r.Header.Get("Origin") != "" || r.Header.Get("Sec-Fetch-Site") != ""
}

// localName says of the host of a request whether no stranger can have it in
// the DNS: an address, a name without a dot, one that is reserved for local use.
func localName(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if _, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil || !strings.Contains(host, ".") {
		return true
	}
	return slices.ContainsFunc([]string{".localhost", ".local", ".internal", ".test", ".home.arpa"},
		func(suffix string) bool { return strings.HasSuffix(host, suffix) })
}
