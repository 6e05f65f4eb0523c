package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"clobd/cmd/cli"
	"clobd/cmd/clobd/client"
	"clobd/ingress"
	"clobd/ingress/conn"
)

// adminConnections are served at once on the admin listener.
const adminConnections = 64

// local is how --listen names a socket in the file system.
const local = "unix:"

// front is what the node listens on.
type front struct {
	*settings
	public net.Listener     // the first one of --listen
	ends   func() time.Time // when the certificate in use does; nil without one
	doors  []string         // addresses of all, as url writes them
	page   string           // address of the operator's page
}

// checkListeners says what is wrong with the options of the listeners.
func (c *serveCommand) checkListeners() (problems []error) {
	if (c.TLSCert == "") != (c.TLSKey == "") {
		problems = append(problems, errors.New("--tls-cert and --tls-key need each other"))
	}
	if c.Demo && (c.TLSCert != "" || strings.HasPrefix(c.Listen, local)) {
		problems = append(problems, cli.Hint(errors.New("the bots of --demo speak HTTP in the clear"),
			"leave --tls-cert out, and let --listen begin with HOST:PORT"))
	}
	switch loopback := client.LoopbackOnly(c.Admin); {
	case loopback:
	case !c.AdminPublic:
		problems = append(problems, cli.Hint(fmt.Errorf("--admin %s is open to other machines", c.Admin),
			"name a loopback address, as 127.0.0.1:8081, or add --admin-public and --tls-cert"))
	case c.TLSCert == "":
		problems = append(problems, cli.Hint(fmt.Errorf("--admin %s would send the operator's token "+
			"in the clear", c.Admin), "add --tls-cert and --tls-key"))
	}
	return problems
}

// readCertificate reads --tls-cert and --tls-key, and reads them again at each SIGHUP until ctx is
// done. It returns nil if they are not set.
func (f *front) readCertificate(ctx context.Context) (*tls.Config, error) {
	if f.TLSCert == "" {
		return nil, nil
	}
	pair, err := conn.ReadCertificate(f.TLSCert, f.TLSKey)
	if err != nil {
		return nil, cli.Hint(err, "--tls-cert and --tls-key name PEM files: the certificate with its "+
			"chain, and its key")
	}
	if time.Now().After(pair.Ends()) {
		f.log.Warn("the certificate has ended", "file", f.TLSCert, "at", pair.Ends())
	}
	onHangup(ctx, func() {
		if err := pair.Reload(time.Now()); err != nil {
			f.log.Error("the new certificate is refused, the old one stays", "error", err)
			return
		}
		f.log.Info("certificate read again", "file", f.TLSCert, "ends", pair.Ends())
	})
	f.ends = pair.Ends
	return pair.Config(), nil
}

// onHangup calls do at each SIGHUP until ctx is done. After that a SIGHUP does nothing: it must not
// end a node that is stopping.
func onHangup(ctx context.Context, do func()) {
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-hangups:
				do()
			}
		}
	}()
}

// serve opens all listeners and serves door and admin on them; fail gets the end of each.
func (f *front) serve(door *ingress.Server, admin *http.Server, secure *tls.Config,
	fail func(what string, err error),
) error {
	var doors []net.Listener
	for address := range strings.SplitSeq(f.Listen, ",") {
		ln, err := listenOn(strings.TrimSpace(address))
		if err != nil {
			return cli.Hint(fmt.Errorf("open public listener: %w", err), "--listen names another one")
		}
		doors = append(doors, ln)
	}
	f.public = doors[0]
	for _, ln := range doors {
		f.doors = append(f.doors, f.urlOf(ln.Addr()))
	}
	operators, err := net.Listen("tcp", f.Admin)
	if err != nil {
		return cli.Hint(fmt.Errorf("open admin listener: %w", err), "--admin names another one")
	}
	f.page = "http://" + operators.Addr().String() + "/"
	operators = conn.Cap(operators, adminConnections)
	if secure != nil && !client.LoopbackOnly(f.Admin) {
		f.page = strings.Replace(f.page, "http:", "https:", 1)
		operators = tls.NewListener(operators, secure)
	}
	admin.Handler = f.addressed(admin.Handler)
	go func() {
		if err := admin.Serve(operators); !errors.Is(err, http.ErrServerClosed) {
			fail("admin listener", err)
		}
	}()
	for _, ln := range doors {
		go func() { fail("public listener", door.Serve(ln)) }()
	}
	return nil
}

func listenOn(address string) (net.Listener, error) {
	if path, is := strings.CutPrefix(address, local); is {
		return conn.ListenUnix(path)
	}
	// The door has deadlines of its own: probes of the kernel would cost four calls a connection.
	silent := net.ListenConfig{KeepAlive: -1}
	return silent.Listen(context.Background(), "tcp", address)
}

// url is where the first public listener is.
func (f *front) url() string { return f.urlOf(f.public.Addr()) }

func (f *front) urlOf(at net.Addr) string {
	switch {
	case at.Network() == "unix":
		return local + at.String()
	case f.TLSCert != "":
		return "https://" + at.String()
	}
	return "http://" + at.String()
}

// addressed serves only requests that name this node. A page on the web can make its own name mean
// a loopback address, and then its browser takes the node's answers for the page's own.
func (f *front) addressed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cache-Control", "no-store")
		if r.TLS != nil {
			h.Set("Strict-Transport-Security", "max-age=31536000")
		}
		if !f.names(r) {
			tell(w, http.StatusMisdirectedRequest, problem{"this host is not the node's",
				"--admin-host NAME lets the admin listener be called so"})
			return
		}
		next.ServeHTTP(w, r)
	})
}

// names reports whether the Host of a request is the node's: a loopback address, the address that
// the connection came to, localhost, the name in --admin or one of --admin-host. A client of
// HTTP/1.0 need not say any, and no browser is one.
func (f *front) names(r *http.Request) bool {
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
	if ip, err := netip.ParseAddr(host); err == nil {
		to, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
		return ip.Unmap().IsLoopback() || to != nil && conn.PeerAddress(to) == ip.Unmap()
	}
	asked, _, _ := net.SplitHostPort(f.Admin)
	same := func(name string) bool { return strings.EqualFold(name, host) }
	return host == "" && !r.ProtoAtLeast(1, 1) || host == "localhost" ||
		host != "" && (same(asked) || slices.ContainsFunc(f.AdminHosts, same))
}
