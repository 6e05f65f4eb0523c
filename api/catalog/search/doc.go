// Package search finds documents by words: by whole words, by beginnings and parts of words, and
// by words with a typo. It knows nothing of the things that its documents describe: a document has
// a number, some texts and a rank, and the results are numbers.
//
//	Document: title, texts, marks, active, volume
//	    │
//	    ▼  words without case and accents
//	segment: documents numbered by rank ── words in order ── documents of each
//	    │                                  three bytes ──► words with them
//	    │                                  all but one letter ──► the whole words
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
//   - An Index never changes. With makes the next Index for the cost of the change and shares the
//     rest with it; the old Index still finds the old documents.
//   - Results do not depend on how an Index came to be: by New, or by many changes.
//   - Texts and queries have no operators, and all lengths are bounded.
//
// Reading order: words.go (words of a text), index.go (parts and changes), segment.go (the index of
// a part), find.go (levels), rank.go (the order). DESIGN.md has the reasons and the figures.
package search
