// Package doctor looks at a machine before a node is trusted to it: will it keep the node's
// promises, how many orders will it carry, and what is worth changing.
//
//	folder ──► disk: syncs, room ──┐
//	/proc, /sys ──► limits, clock ─┼──► machine ──► checks ──► Diagnosis ──► text, JSON
//	all cores ──► signature checks ┘            └─► estimate ──┘
//
// Contract: Examine changes nothing. It writes one file of its own into the folder, or into the
// nearest parent that exists, and removes it. It takes no lock, so a node may run in the folder
// meanwhile; then the limits are those of that node. Examine ends also on a disk that hangs.
// Measuring and judging are apart: a check is a function of what was measured. What a system does
// not tell is a check without a verdict, never a good one.
//
// Reading order: doctor.go, machine.go (what is measured), system_linux.go, parse.go, then disk.go,
// limits.go and cores.go (the checks), estimate.go.
package doctor
