package page

import (
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"clobd/ingress/conn"
)

// gate says who may read the page.
type gate struct {
	bearer []byte       // the operator's Authorization
	refuse http.Handler // answers a wrong one, and counts it
	pass   string       // cookie that stands for the token, below curvesPath alone
}

// passName is the cookie of whoever has shown the token. A browser sends no Authorization of ours
// when it loads the curves or opens their socket.
const passName = "clobd_curves"

// lets serves GETs of this node's own pages, and of programs that are no browser: on loopback all,
// elsewhere those with the token. A shell is what every node serves alike; it needs no token, so
// that it can ask for one.
func (g *gate) lets(shell bool, policy string, next http.Handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Cache-Control", "no-store")
		switch {
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			h.Set("Allow", "GET, HEAD")
			refuse(w, http.StatusMethodNotAllowed, "method not allowed", "use GET")
		case !ownPage(r):
			refuse(w, http.StatusForbidden, "requests of other web pages are refused",
				"open the address in a window of its own")
		case shell || local(r) || g.knows(w, r):
			next.ServeHTTP(w, r)
		default:
			g.refuse.ServeHTTP(w, r)
		}
	}
}

// ownPage reports whether a request comes from a page of this listener, from somebody who opens it
// in a window, or from no browser. Browsers mark what other pages ask for.
func ownPage(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	opened := r.Header.Get("Sec-Fetch-Dest") == "document" // and the page that opened it reads nothing
	if site != "" && site != "same-origin" && site != "none" && !opened {
		return false
	}
	for _, origin := range r.Header.Values("Origin") {
		u, err := url.Parse(origin)
		if err != nil || u.Host == "" || !strings.EqualFold(u.Host, r.Host) ||
			(u.Scheme == "https") != overTLS(r) {
			return false
		}
	}
	return true
}

// overTLS reports whether the browser speaks TLS, with this listener or with a proxy before it.
func overTLS(r *http.Request) bool {
	return r.TLS != nil || strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https")
}

// passedOn are the header fields by which proxies say that a request comes from elsewhere.
var passedOn = []string{"Forwarded", "Via", "X-Forwarded-For", "X-Forwarded-Host",
	"X-Forwarded-Proto", "X-Real-Ip"}

// local reports whether a request comes from this machine and names it by a loopback name. One that
// a proxy passes on comes from elsewhere, if the proxy says so or keeps the name.
func local(r *http.Request) bool {
	for _, name := range passedOn {
		if _, is := r.Header[name]; is {
			return false
		}
	}
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	named, not := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil && peer.Addr().Unmap().IsLoopback() &&
		(not == nil && named.Unmap().IsLoopback() || strings.EqualFold(host, "localhost") || host == "")
}

// knows reports whether a request has the token, or the cookie that stands for it. Whoever has the
// token gets the cookie.
func (g *gate) knows(w http.ResponseWriter, r *http.Request) bool {
	same := func(given string, want []byte) bool {
		return subtle.ConstantTimeCompare([]byte(given), want) == 1
	}
	if same(r.Header.Get("Authorization"), g.bearer) {
		http.SetCookie(w, &http.Cookie{Name: passName, Value: g.pass, Path: curvesPath,
			Secure: overTLS(r), HttpOnly: true, SameSite: http.SameSiteStrictMode})
		conn.Keep(r.Context())
		return true
	}
	given, err := r.Cookie(passName)
	return err == nil && strings.HasPrefix(r.URL.Path, curvesPath) && same(given.Value, []byte(g.pass))
}
