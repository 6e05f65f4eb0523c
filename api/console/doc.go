// Package console is the pages that traders look at: markets, one market, a wallet, and a ticket
// for orders. A browser gets them from the public listener, below /console/.
//
//	browser ── GET /console/ ─────────► static/: HTML, CSS, modules    of every node the same
//	        ── GET /console/node.json ─► Facts                         of this node
//	        ── GET /markets /book …, sockets, POST /order ─► the interface of all clients
//
// # Contract
//
// The pages use the public interface and nothing else, and ask no other host: their policy forbids
// it. They have no framework and no build step: what is in static is what the browser gets. What
// the catalog and strangers say is shown as text; the policy refuses markup that a script makes of
// text. Pages can trade where there is a key: of paper money, which the page keeps in the browser's
// storage, only on a node that says it is a demo, or of a wallet in the browser, which never shows
// it.
//
// Answers are kept and compressed by api/pages, and asked for again with their tag.
//
// # Reading order
//
// console.go; then static/app.js, markets.js, market.js with book.js and charts.js, wallet.js,
// trade.js with account.js and signer.js; all stand on dom.js, node.js and stream.js.
package console
