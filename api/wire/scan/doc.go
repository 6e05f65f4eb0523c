// Package scan reads JSON without making a tree of it. Whoever reads a request, or a record with a
// hundred members, wants a few of them; the text of the others is checked and stays as it was
// written.
//
//	text ──► Object, Elements ──► members and elements, as written and checked
//	             │
//	             ▼  of text that was checked before, in a fraction of the time
//	         Skim, Each
//	             │
//	             ▼  one value
//	         Text, Bool, List, Decimal
//
// The contract:
//
//   - Object and Elements accept what encoding/json accepts, but for strings that are not UTF-8 and
//     values that nest deeper than 64 levels. The fuzz test holds them against encoding/json.
//   - What they hand on are parts of the text: nothing is copied.
//   - Skim and Each read only text that Object or Elements has accepted.
//
// Reading order: scan.go.
package scan
