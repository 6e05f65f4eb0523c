package engine

// TouchAhead is how many ids are best touched together: enough that their cache misses overlap, few
// enough that nothing is displaced again before Apply comes to it.
const TouchAhead = 16

// Touch reads what Apply will read first for Commands of these ids: their cells in the table, the
// placements and the orders behind them. Apply follows one pointer after the other and waits for
// each; here the misses of many Commands are under way at the same time. It changes nothing, and
// its result means nothing. At most TouchAhead ids are read.
func (x *Exchange) Touch(ids []*OrderID) (nothing uint64) {
	s := &x.seen
	if s.ring.used == 0 || x.orders.used == 0 {
		return 0
	}
	var refs [TouchAhead]uint32
	ids = ids[:min(len(ids), TouchAhead)]
	for i, id := range ids {
		refs[i] = uint32(s.table.cells[s.tag(id)&s.table.mask])
	}
	for i := range ids {
		if refs[i]&inRing != 0 {
			refs[i] = s.ring.at(refs[i] &^ inRing).order
		}
	}
	for i := range ids {
		o := x.orders.at(refs[i])
		nothing += uint64(o.position) + uint64(o.first) // one of each cache line
	}
	return nothing
}
