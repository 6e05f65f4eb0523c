package disk

import (
	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
)

// Appended are Pebble's options for large values that are only ever appended in the order of their
// keys, and never change: tables never overlap, so that compaction moves them instead of rewriting
// them; signatures do not compress; one value fills a block. memTable is the size of a memtable in
// bytes, cache that of the block cache.
func Appended(memTable int, cache int64) *pebble.Options {
	o := common(memTable, cache)
	o.MemTableStopWritesThreshold = 4
	o.L0StopWritesThreshold = 1000 // tables that do not overlap are no burden to readers
	o.TargetFileSizes[0] = 64 << 20
	for i := range o.Levels {
		o.Levels[i].BlockSize = 64 << 10
	}
	o.ApplyCompressionSettings(func() pebble.DBCompressionSettings {
		return pebble.DBCompressionNone
	})
	return o
}

// Rewritten are Pebble's options for small values under random keys that are rewritten: no log, and
// filters for lookups of keys that do not exist. memTable is the size of a memtable in bytes, cache
// that of the block cache beside two memtables. The caller sets how much may wait for the disk.
func Rewritten(memTable int, cache int64) *pebble.Options {
	// Pebble takes the memtables out of the cache: the one that is written and one more, kept for
	// the next or being flushed, would leave nothing of it.
	o := common(memTable, cache+2*int64(memTable))
	o.DisableWAL = true
	o.TargetFileSizes[0] = 8 << 20
	for i := range o.Levels {
		o.Levels[i].BlockSize = 8 << 10
		o.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
	}
	o.ApplyCompressionSettings(func() pebble.DBCompressionSettings {
		return pebble.DBCompressionFastest
	})
	return o
}

func common(memTable int, cache int64) *pebble.Options {
	return &pebble.Options{
		FormatMajorVersion:    pebble.FormatNewest, // its log notices damage before the end
		MemTableSize:          uint64(memTable),
		CacheSize:             cache,
		L0CompactionThreshold: 4,
		BytesPerSync:          1 << 20,
		MaxOpenFiles:          1024,
	}
}
