// Package scan reads JSON without making a tree of it. Callers want a few members of a request, or
// of a record with a hundred members. The text of the others is checked and stays as written.
//
//	the body of a request ──► Document, Array ──► the Fields that a Shape asks for
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
//   - Document accepts and refuses what encoding/json does, at most 32 levels deep: names match in
//     any letter case, null leaves a member as it was. Strings mean what they mean in
//     encoding/json, escapes and broken UTF-8 included.
//   - Document is stricter in one thing: no object of the body, asked for or not, may have two keys
//     that fold alike, two spellings of one member, or more than 64 keys. Of two such keys one
//     reader takes the first and another the last, and a signature covers both.
//   - Object and Elements accept what encoding/json accepts, but no strings that are not UTF-8 and
//     no values that nest deeper than 64 levels. The fuzz test holds them against encoding/json.
//   - What they hand on are parts of the text: nothing is copied.
//   - Skim and Each read only text that Object or Elements has accepted.
//
// Two readers remain because their rules differ. A request goes to typed fields in one pass over a
// string, and broken UTF-8 is repaired as in encoding/json. A record keeps its text, so broken
// UTF-8 is refused, and members come with their places. They share words, numbers and white space.
//
// Reading order: document.go and strict.go (requests), scan.go (records, and the numbers and words
// of both).
package scan
