package ingress

import (
	"errors"

	"clobd/engine"
)

// errCrowded says that nothing is taken in that makes the journal longer without need.
var errCrowded = errors.New("the node takes only cancels: its disk is nearly full")

// refuseCrowded is the answer then: nothing was entered, send it again later.
var refuseCrowded = refusal{503, "cancel_only", engine.Rejects[engine.RejectCancelOnly].Text, nil}

// Full makes the door take only what ends orders and what operators ask for, or everything again:
// for a disk that has no room for more. It is no state of the exchange and is not journaled. An
// order that was placed before still gets its result.
func (s *Server) Full(full bool) { s.full.Store(full) }

// crowded says whether a Command must wait until there is room again.
func (s *Server) crowded(c *engine.Command) bool {
	if !s.full.Load() {
		return false
	}
	switch c.Kind {
	case engine.Place, engine.SplitTokens, engine.MergeTokens, engine.RedeemTokens:
		return true
	case engine.SetKey:
		return !c.Revoke
	}
	return false
}
