package catalog

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"reflect"
	"strings"
	"testing"
)

// fuzzSeeds are records of every kind.
func fuzzSeeds() []string {
	seeds := strings.Split(strings.TrimSpace(string(Demo())), "\n")
	return append(seeds, market(1, `"closed":true`), event("1", market(1, ""), market(2, "")),
		market(3, `"events":[{"id":"7","title":"T"}],"tags":[{"id":"9","label":"L","slug":"l"}]`),
		`{"condition_id":"`+cond(4)+`","tokens":[{"token_id":"8","outcome":"Yes"},`+
			`{"token_id":"9","outcome":"No"}],"minimum_tick_size":0.01,"active":true}`,
		`{"id":"5","ticker":"t","seriesType":"single","recurrence":"daily","title":"S"}`,
		`{"id":"9","label":"Label","slug":"label"}`, `{"data":[{"id":"9","label":"L","slug":"l"}]}`,
		`{"id":"1","markets":{}}`, `{"id":1e3,"label":"L","slug":null}`, "{}", "[]", "", `{"id":"\ud800"`)
}

// FuzzRecord: what the log keeps of a record is read back as the same row.
func FuzzRecord(f *testing.F) {
	for _, s := range fuzzSeeds() {
		f.Add([]byte(s))
	}
	p, q := newParser(), newParser()
	f.Fuzz(func(t *testing.T, record []byte) {
		p.reset()
		p.take(record, 1)
		for i := range p.items {
			it := &p.items[i]
			if it.broken || it.why != "" {
				continue
			}
			frame := bytes.Clone(p.seal(it, 5, 3, 9))
			q.reset()
			restore(q, frame, 0)
			back := &q.items[0]
			if back.broken || back.why != "" || back.kind != it.kind || back.id != it.id ||
				back.head.no != 5 || back.head.link != 3 || back.head.group != 9 {
				t.Fatalf("%s: %+v, read back as %+v", record, it, back)
			}
			if was, is := rowOf(it), rowOf(back); !reflect.DeepEqual(was, is) {
				t.Fatalf("%s: %+v, read back as %+v", record, was, is)
			}
		}
	})
}

// rowOf returns what an item says by itself, without what the place of its record says.
func rowOf(it *item) any {
	switch it.kind {
	case aMarket, aBook:
		m := *it.market
		m.line, m.Group = 0, 0
		return m
	case anEvent:
		return *it.event
	case aSeries:
		return *it.series
	}
	return *it.tag
}

// FuzzFrame: whatever a frame of the log holds, it makes exactly one item, and one that checks out
// is written again with the same bytes.
func FuzzFrame(f *testing.F) {
	p := newParser()
	for _, s := range fuzzSeeds() {
		p.reset()
		p.take([]byte(s), 1)
		for i := range p.items {
			if it := &p.items[i]; !it.broken && it.why == "" {
				f.Add(bytes.Clone(p.seal(it, int32(i), None, 1)), true)
			}
		}
	}
	f.Add(linkFrame(3, 4, 5), true)
	f.Add(markFrame([]byte("how far")), true)
	f.Add(bytes.Repeat([]byte{255}, headSize), false)
	f.Fuzz(func(t *testing.T, frame []byte, mend bool) {
		if len(frame) < headSize {
			return // frameReader hands on no such frame
		}
		if mend {
			binary.LittleEndian.PutUint32(frame, uint32(len(frame)-8))
			binary.LittleEndian.PutUint32(frame[4:], crc32.Checksum(frame[8:], crcTable))
		}
		p.reset()
		restore(p, frame, 0)
		if len(p.items) != 1 {
			t.Fatalf("%x: %d items", frame, len(p.items))
		}
		h, err := readHead(frame)
		if err != nil {
			if !p.items[0].broken {
				t.Fatalf("%x: taken, although: %v", frame, err)
			}
			return
		}
		v, err := scanLog(strings.NewReader(logTitle + string(frame)))
		if err != nil || v.Records != 1 || v.Bytes != int64(len(logTitle)+len(frame)) {
			t.Fatalf("%x: read as %+v, %v", frame, v, err)
		}
		again := bytes.Clone(frame)
		putHead(again, &h)
		if canonical := frame[9] <= 1 && frame[10] == 0 && frame[11] == 0; canonical &&
			!bytes.Equal(again, frame) {
			t.Fatalf("%x: written as %x", frame, again)
		}
	})
}
