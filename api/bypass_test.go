package api

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"
)

// disguises are other ways to write a path that a router or a proxy may take for the same.
func disguises(path string) (all []string) {
	name := path[strings.LastIndexByte(path, '/')+1:]
	all = append(all, path, path+"/", "/"+path, path+"//", path+"/.", "/x/.."+path, "/."+path,
		"/data-api"+path, "/data-api/"+path, "/data-api/.."+path, "/DATA-API"+path, "/clob"+path,
		strings.ToUpper(path), path+";x=1", path+"%00", path+"%20", path+"%2f", path+"%3f", path+"#x",
		strings.Replace(path, "/", "/%2e/", 1), strings.Replace(path, "/", "%2f", 1),
		strings.Replace(path, "/", `\`, 1), "http://localhost"+path, "http://10.1.2.3"+path,
		"//10.1.2.3"+path, path+"/x", path+"?", path+".json")
	for i := range len(name) {
		at := len(path) - len(name) + i
		all = append(all, path[:at]+"%"+string("0123456789abcdef"[path[at]>>4])+
			string("0123456789abcdef"[path[at]&15])+path[at+1:])
	}
	return all
}

// TestWalletAllowBypasses: whoever is not on the list learns nothing of wallets, whatever the path,
// the method and the headers look like.
func TestWalletAllowBypasses(t *testing.T) {
	n := newNode(t)
	n.run()
	n.ladder(1)
	client := netip.MustParseAddr("127.0.0.1")
	h := n.again(func(o *Options) {
		o.WalletAllow = []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")}
		o.Client = func(*fasthttp.RequestCtx) netip.Addr { return client }
	})
	user := trader("maker").Hex()
	query := "user=" + user + "&market=" + listing(1, 0).Condition.Hex() + "&id=1"
	names := []string{"X-Forwarded-For", "X-Real-IP", "Forwarded", "X-Client-IP", "True-Client-IP",
		"CF-Connecting-IP", "X-Original-URL", "X-Rewrite-URL", "X-HTTP-Method-Override"}
	refused := 0
	try := func(method, path string) int {
		ctx := ask(method, path+"?"+query)
		for _, name := range names {
			ctx.Request.Header.Set(name, "10.1.2.3")
		}
		h.Public(ctx)
		body := string(ctx.Response.Body())
		status := ctx.Response.StatusCode()
		if status == 200 || strings.Contains(strings.ToLower(body), strings.ToLower(user[2:])) {
			t.Errorf("%s %s: %d %s", method, path, status, body)
		}
		if status == 401 {
			refused++
		}
		return status
	}
	for _, r := range n.handler.wallets.Routes() {
		for _, method := range []string{"GET", "HEAD", "POST", "get", "OPTIONS", "GET "} {
			for _, path := range disguises(r.Path) {
				try(method, path)
			}
		}
		client = netip.MustParseAddr("::ffff:127.0.0.1")
		if status := try("GET", r.Path); status != 401 {
			t.Errorf("%s: %d", r.Path, status)
		}
		client = netip.MustParseAddr("10.1.2.3")
		ctx := ask("GET", r.Path+"?"+query)
		if h.Public(ctx); ctx.Response.StatusCode() == 401 {
			t.Errorf("%s: %d for who is on the list", r.Path, ctx.Response.StatusCode())
		}
		client = netip.MustParseAddr("127.0.0.1")
	}
	if refused < 2*len(n.handler.wallets.Routes()) {
		t.Errorf("%d refusals: the disguises try nothing", refused)
	}
}
