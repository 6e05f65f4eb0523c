package ingress

import (
	"errors"
	"strings"
	"time"

	"clobd/api/wire"
	"clobd/ingress/auth"
	"clobd/ingress/head"
)

// The headers that each kind of authentication needs, by their numbers in headers.
var (
	needL1      = []int{0, 3, 4}       // ADDRESS, TIMESTAMP, SIGNATURE
	needL2      = []int{0, 1, 2, 3, 4} // the five of a trading key
	needBuilder = []int{8, 9, 10, 11}  // the four of a builder's key
)

// refuseUnclear is refuseCaller that also names the headers which came twice, or not at all: the
// client knows what it sent. What was wrong with a header that came once is not told.
func refuseUnclear(c *head.Credentials, err error, needs []int, now time.Time) *wire.Refusal {
	refused := refuseCaller(err, now)
	var fault string
	switch {
	case c.Doubled != "":
		fault = "twice: " + c.Doubled
	case errors.Is(err, auth.ErrMissing) || errors.Is(err, auth.ErrL1Missing):
		fault = "missing: " + strings.Join(c.Missing(needs), ", ")
	default:
		return refused
	}
	advice := adviceL2
	if errors.Is(err, auth.ErrL1) {
		advice = adviceL1
	}
	return wire.Refuse(refused.Status, refused.Code, refused.Text, fault+"; "+advice)
}
