// Package budget divides the CPU time of a node among the stages of an order's way.
//
//	CPU profile ──► samples ──► stack, from the leaf outwards
//	                               │
//	                               ▼
//	          rules: prefix of a function ──► Stage     the first frame that a rule knows decides
//	                               │
//	                               ▼
//	                   Line: Stage, share, heaviest functions
//
// A stack belongs to one stage, and the innermost frame that a rule names decides: the copy of
// memory within the decoder is decoding, the wake-up of a goroutine within the decoder is the
// runtime's. A helper that several stages share has no rule: its caller decides, and the home of
// its package only where no frame has a rule. A stack without a known frame is told as Rest, with
// its functions, and not hidden in another stage.
//
// Contract: Divide looks at names only, so a function of the node that is renamed moves to the
// stage of its caller, or into Rest; the tests hold the rules to functions that exist.
//
// Read rules.go, divide.go, then floors.go.
package budget
