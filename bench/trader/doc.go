// Package trader is a client that trades at the node's public door, and the bots of the demo market
// that trade with it. The node links this package for --demo; the rest of bench it does not link.
//
//	private key ─► Client.Derive ─────────────► POST /auth/api-key ─► key, secret, passphrase
//	Limit ───────► Client.Sign ─► body, id
//	body ────────► Client.Do ─► POLY_ headers ─► POST /order ─► status, JSON
//
//	RunBots ─► 3 quoters: 4 orders a side of each market, moved one at a time
//	        └► 2 takers: now and then buy what is asked near the fair price
//
// Contract: a Client uses the public door only. After Derive any number of goroutines may use it.
// RunBots ends with its context and cancels the orders of its bots. Read client.go, then bots.go.
package trader
