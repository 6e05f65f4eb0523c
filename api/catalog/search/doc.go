// Package search finds documents by their words: by whole words, by how words begin, by what
// stands inside them, and by what was meant where a letter is wrong. It knows nothing of what its
// documents describe: they come in with a number, some texts and a rank, and what is found are
// numbers.
//
//	Document: title, texts, marks, active, volume
//	    │
//	    ▼  words without case and accents
//	segment: documents numbered by rank ── words in order ── documents of each
//	    │                                  three letters ──► words with them
//	    │                                  all but one letter ──► words left of it
//	    ▼
//	Index: the bulk │ what changed │ what changed since      struck out: a bitmap in each
//	    │
//	    ▼  Query: words, marks, a page
//	level by level, as bitmaps:  in the title ⊂ anywhere ⊂ begins ⊂ within ⊂ mistyped
//	    │
//	    ▼  the first thousand of a level are weighed by the order of their titles' words
//	Found: the numbers of a page, and how many there are in all
//
// The contract:
//
//   - An Index never changes. With makes the next one for the cost of the change, and shares all
//     else with it; whoever holds the old one goes on finding what was there.
//   - What is found does not depend on how an Index came to be: New of all documents, or one change
//     after the other.
//   - Texts and queries are data: nothing in them is an operator, and all lengths are bounded.
//
// Reading order: words.go (what a word is), index.go (parts and changes), segment.go (what is kept
// of documents), find.go (levels), rank.go (the order). DESIGN.md has the reasons and the figures.
package search
