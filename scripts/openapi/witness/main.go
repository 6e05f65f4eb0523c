package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"syscall"
	"time"

	"clobd/scripts/asyncapi"
	"clobd/scripts/openapi"
)

func main() {
	listen := flag.String("listen", "", "HOST:PORT to listen on")
	node := flag.String("node", "", "http://HOST:PORT of the node")
	flag.Parse()
	if err := run(*listen, *node, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "witness:", err)
		os.Exit(1)
	}
}

// run serves until SIGTERM and reports what it has seen. The error says what could not be done, or
// that answers were not as promised.
func run(listen, node string, out io.Writer) error {
	target, err := url.Parse(node)
	if err != nil || target.Host == "" || listen == "" {
		return fmt.Errorf("--listen %q --node %q: want HOST:PORT and http://HOST:PORT", listen, node)
	}
	d, p, err := fetchBoth(node)
	if err != nil {
		return err
	}
	w := newWitness(d, p, target)
	server := &http.Server{Addr: listen, Handler: w.proxy, ReadHeaderTimeout: time.Minute}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- server.ListenAndServe() }()
	select {
	case err := <-ended:
		return fmt.Errorf("serve %s: %w", listen, err)
	case <-ctx.Done():
	}
	if err := server.Close(); err != nil {
		return fmt.Errorf("close %s: %w", listen, err)
	}
	<-ended
	return w.report(out)
}

// fetchBoth fetches the node's documents: OpenAPI for its answers, AsyncAPI for its sockets.
func fetchBoth(node string) (*openapi.Document, *asyncapi.Protocol, error) {
	text, err := fetch(node + "/openapi.json")
	if err != nil {
		return nil, nil, err
	}
	d, err := openapi.Parse(text)
	if err != nil {
		return nil, nil, err
	}
	if text, err = fetch(node + "/asyncapi.json"); err != nil {
		return nil, nil, err
	}
	p, err := asyncapi.Parse(text)
	return d, p, err
}

func fetch(url string) ([]byte, error) {
	answer, err := http.Get(url)
	if err != nil {
		return nil, fmt.Errorf("fetch the document: %w", err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = errors.New(answer.Status)
	}
	if err != nil {
		return nil, fmt.Errorf("fetch %s: %w", url, err)
	}
	return text, nil
}
