package disk

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"
)

// TestTurnBack: whichever single bit of a text or of its checksum is flipped, the checksum tells
// it, and of a text that is sound nothing is changed.
func TestTurnBack(t *testing.T) {
	const at = 9
	dice := rand.New(rand.NewPCG(3, 4))
	good := make([]byte, 61)
	for i := range good {
		good[i] = byte(dice.Uint32())
	}
	binary.LittleEndian.PutUint32(good[at:], sumAround(good, at))
	if b := bytes.Clone(good); TurnBack(b, at) || !bytes.Equal(b, good) || !Holds(b, at) {
		t.Error("a sound text was changed")
	}
	for bit := range 8 * len(good) {
		b := bytes.Clone(good)
		b[bit/8] ^= 1 << (bit % 8)
		if Holds(b, at) {
			t.Errorf("bit %d is not noticed", bit)
		}
		if !TurnBack(b, at) || !bytes.Equal(b, good) {
			t.Errorf("bit %d stays flipped", bit)
		}
	}
}
