package bench

import (
	"strings"
	"testing"
	"time"
)

// TestSlowest: of the orders on the node's page those of the load's own time are told, at most
// three, with the stages that they reached.
func TestSlowest(t *testing.T) {
	body := []byte(`{"stages":["parse","wait","sync"],"slowest":[
		{"at":9999,"total":90000,"stages":[1,1,89998]},
		{"at":10500,"total":70000,"stages":[20,60000,9980]},
		{"at":10250,"total":40000,"stages":[20,39980,0]},
		{"at":10001,"total":30000,"stages":[10,10,9980]},
		{"at":10002,"total":20000,"stages":[10,10,19980]},
		{"at":11000,"total":10000,"stages":[10,10,9980]}]}`)
	list, err := parseSlowest(body, time.UnixMilli(10000), time.UnixMilli(11000))
	if err != nil || len(list) != slowShown {
		t.Fatalf("%d orders, %v", len(list), err)
	}
	if got, want := list[0].String(), "70.0 ms at 0.50 s: wait 60.0, sync 10.0"; got != want {
		t.Errorf("first %q, want %q", got, want)
	}
	if len(list[1].Stages) != 2 || list[1].Stages[1] != (SlowStage{"wait", 39980}) {
		t.Errorf("second %+v: a stage that an order did not reach is left out", list[1])
	}
	var out strings.Builder
	writeSlowest(&out, list, &Hiccup{P99Millis: 1.25, MaxMillis: 33})
	if !strings.Contains(out.String(), "; 30.0 ms at 0.00 s: sync 10.0, between stages 20.0; the machine paused p99 1.2, at") {
		t.Errorf("printed %q", out.String())
	}
	if _, err := parseSlowest([]byte("{"), time.Time{}, time.Time{}); err == nil {
		t.Error("half a page is no error")
	}
}
