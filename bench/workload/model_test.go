package workload

import (
	"reflect"
	"testing"

	"clobd/engine"
)

func TestGenerateSameSeedSameOperations(t *testing.T) {
	for _, w := range Known() {
		w.Books = min(w.Books, 20)
		a, expA := draw(t, w, 7, 200, 3000)
		b, expB := draw(t, w, 7, 200, 3000)
		if !reflect.DeepEqual(a, b) || expA != expB {
			t.Errorf("%s: two draws from one seed differ", w.Name)
		}
		c, _ := draw(t, w, 8, 200, 3000)
		if reflect.DeepEqual(a, c) {
			t.Errorf("%s: seeds 7 and 8 draw the same operations", w.Name)
		}
		// A run that ends early is checked against the draw of what it did.
		if prefix, _ := draw(t, w, 7, 200, 1000); !reflect.DeepEqual(a[:len(prefix)], prefix) {
			t.Errorf("%s: the draw of 1,000 operations is no prefix of that of 3,000", w.Name)
		}
	}
}

// TestEngineAgreesWithModel applies every mix and compares fills, volume, resting orders and
// refusals with the generator's own queues, which share no code with the engine.
func TestEngineAgreesWithModel(t *testing.T) {
	for _, w := range Known() {
		w.Books = min(w.Books, 20)
		ops, exp := draw(t, w, 11, 2000, 30_000)
		x := engine.NewExchange(3)
		var tally Tally
		var events []engine.Event
		seq := engine.Sequence(0)
		apply := func(commands []engine.Command) {
			for i := range commands {
				commands[i].Seen = seq
				seq++
				events = x.Apply(&commands[i], seq, 1, events[:0])
				tally.Add(events)
			}
		}
		apply(w.Setup())
		if tally.Rejected != 0 {
			t.Fatalf("%s: %d commands of the setup were refused", w.Name, tally.Rejected)
		}
		tally = Tally{}
		apply(Commands(ops, 0, len(ops)))
		if err := tally.Check(exp); err != nil {
			t.Errorf("%s: %v", w.Name, err)
		}
		if exp.Fills == 0 || exp.Live == 0 {
			t.Errorf("%s: nothing traded or nothing rests: %+v", w.Name, exp)
		}
	}
}
