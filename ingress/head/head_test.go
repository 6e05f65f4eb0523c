package head

import (
	"bufio"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"
)

const benchmarkHead = "POST /order HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nUser-Agent: client\r\n" +
	"POLY_ADDRESS: 0x5Ffd6b6d6d1C5b0A0a8c3B3f8C5d5a5B5c5d5E5f\r\nPOLY_SIGNATURE: " +
	"xXxXxXxXxXxXxXxXxXxXxXxXxXxXxXxXxXxXxXxXxXx=\r\nPOLY_TIMESTAMP: 1700000000\r\n" +
	"POLY_API_KEY: 7d9b6f1c-9d6e-4c2a-8a8e-0d6f8f4f6e5a\r\nPOLY_PASSPHRASE: " +
	"5f4dcc3b5aa765d61d8327deb882cf995f4dcc3b5aa765d61d8327deb882cf99\r\n" +
	"Content-Type: application/json\r\nContent-Length: 700\r\n\r\n"

func BenchmarkJudge(b *testing.B) {
	var h fasthttp.RequestHeader
	if err := h.Read(bufio.NewReader(strings.NewReader(benchmarkHead))); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if Judge(&h) != nil {
			b.Fatal("refused")
		}
	}
}
