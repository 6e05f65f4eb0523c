package engine

import "testing"

func TestForms(t *testing.T) {
	id := [16]byte{0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x86, 0x77, 0x88, 0x99, 0xaa, 15: 0xff}
	if got := string(AppendUUID(nil, id)); got != "00112233-4455-8677-8899-aa00000000ff" {
		t.Error(got)
	}
	want := OrderID{31: 0xab}
	const digits = "00000000000000000000000000000000000000000000000000000000000000"
	for s, good := range map[string]bool{"0x" + digits + "ab": true, "0X" + digits + "AB": true,
		digits + "ab": false, "0x" + digits + "a": false, "0x" + digits + "abc": false,
		"0x" + digits + "ag": false, "": false, "0x": false} {
		if id, ok := ParseOrderID(s); ok != good || ok && id != want {
			t.Errorf("order id %q: %v %x", s, ok, id)
		}
		if c, ok := ParseCondition(s); ok != good || ok && c != Condition(want) {
			t.Errorf("condition %q: %v %x", s, ok, c)
		}
	}
}
