package ingress

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"clobd/ingress/auth"
)

// TestStrangersLearnNothing: whichever check failed, the answer is the same. Only a wrong clock is
// named, and nobody is told which part of a key was wrong.
func TestStrangersLearnNothing(t *testing.T) {
	answer := func(err error) string {
		var ctx fasthttp.RequestCtx
		refuseCaller(err, time.Unix(1_760_000_000, 0)).Send(&ctx)
		if ctx.Response.StatusCode() != 401 {
			t.Errorf("%v: status %d", err, ctx.Response.StatusCode())
		}
		return string(ctx.Response.Body())
	}
	for _, family := range []struct {
		text, code string
		same       []error
		window     error
	}{
		{"Unauthorized/Invalid api key", "unauthorized", []error{auth.ErrMissing, auth.ErrTimestamp,
			auth.ErrKey, auth.ErrAddress, auth.ErrKeyID, auth.ErrSignature}, auth.ErrWindow},
		{"Invalid L1 Request headers", "invalid_l1", []error{auth.ErrL1Missing, auth.ErrL1Address,
			fmt.Errorf("%w: %w", auth.ErrL1, auth.ErrTimestamp), auth.ErrL1Chain, auth.ErrL1Form,
			auth.ErrL1Signature},
			fmt.Errorf("%w: %w", auth.ErrL1, auth.ErrWindow)},
	} {
		first := answer(family.same[0])
		for _, err := range family.same {
			got := answer(err)
			if got != first || !strings.Contains(got, `"`+family.text+`"`) ||
				!strings.Contains(got, `"`+family.code+`"`) {
				t.Errorf("%v: %s", err, got)
			}
		}
		if got := answer(family.window); !strings.Contains(got, `"`+family.text+`"`) ||
			!strings.Contains(got, `"timestamp_out_of_window"`) {
			t.Errorf("%v: %s", family.window, got)
		}
	}
}
