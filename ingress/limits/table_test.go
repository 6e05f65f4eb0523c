package limits

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"
)

// interfaceRows is section 8 of the interface.
var interfaceRows = map[string]Window{
	"catalog": {4000, ten}, "events": {500, ten}, "markets": {300, ten}, "listing": {900, ten},
	"tags": {200, ten}, "public-search": {350, ten}, "general": {5000, ten}, "health": {50, ten},
	"book": {200, ten}, "books": {80, ten}, "price": {200, ten}, "prices": {80, ten},
	"midpoint": {200, ten}, "prices-history": {100, ten}, "batch-prices-history": {80, ten},
	"trades": {150, ten}, "order-burst": {2400, ten}, "order-sustained": {24000, 10 * time.Minute},
	"cancel-burst": {2400, ten}, "cancel-sustained": {24000, 10 * time.Minute},
}

// TestInterfaceRows: no weight lowers a limit that the interface names. All others are what a
// second of one CPU can do in ten.
func TestInterfaceRows(t *testing.T) {
	seen := make(map[string]bool)
	for _, table := range [][]limit{addressTable[:], accountTable[:], pairTable[:]} {
		for i := range table {
			l := &table[i]
			if seen[l.name] {
				t.Errorf("two limits are called %s", l.name)
			}
			seen[l.name] = true
			want, named := interfaceRows[l.name]
			if named && l.Window != want {
				t.Errorf("%s: %v, the interface has %v", l.name, l.Window, want)
			}
			work := time.Duration(l.Limit) * time.Duration(l.micros) * time.Microsecond
			if !named && work > 1050*time.Millisecond {
				t.Errorf("%s: an address may cause %v of work in %v", l.name, work, l.Period)
			}
		}
	}
	for name := range interfaceRows {
		if !seen[name] {
			t.Errorf("there is no limit %s", name)
		}
	}
}

// TestEachRouteHasAWindow: every documented route counts in a window beside the general one; writes
// in one of their account.
func TestEachRouteHasAWindow(t *testing.T) {
	text, err := os.ReadFile("../../api/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		Paths map[string]map[string]json.RawMessage
	}
	if err := json.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	if len(document.Paths) < 90 {
		t.Fatalf("%d paths", len(document.Paths))
	}
	ofAccounts := map[string]bool{
		"POST /order": true, "POST /orders": true, "POST /v1/heartbeats": true,
		"POST /heartbeats": true, "POST /split": true, "POST /merge": true, "POST /redeem": true,
		"DELETE /auth/api-key": true, "POST /auth/readonly-api-key": true,
		"DELETE /auth/readonly-api-key": true, "POST /auth/builder-api-key": true,
		"DELETE /auth/builder-api-key": true,
	}
	for path, methods := range document.Paths {
		for _, method := range []string{"GET", "POST", "DELETE", "PUT", "PATCH"} {
			if _, is := methods[strings.ToLower(method)]; !is {
				continue
			}
			name := method + " " + path
			scope := AddressScope(method, strings.ReplaceAll(path, "{", "x"), false)
			if !ofAccounts[name] && !scope.Cancels && len(scope.rows) < 2 {
				t.Errorf("%s counts in no window of its own: %s", name, names(scope))
			}
		}
	}
}
