// Two traders who place, meet and cancel orders, for the suites that only listen. A kit has the
// published client that signs for them: { ClobClient, Wallet, Side, OrderType }.
import { ok, strictEqual } from "node:assert";
import { fund, publicURL } from "./house.mjs";
import { chain } from "./clob.mjs";

const prices = { bids: [0.41, 0.43, 0.45, 0.47], asks: [0.52, 0.54, 0.56, 0.58] };

// trader makes a trader with money, and with shares of the tokens.
export async function trader(kit, tokens) {
  const signer = kit.Wallet.createRandom();
  const creds = await new kit.ClobClient({ host: publicURL, chain, signer }).createOrDeriveApiKey();
  await fund(signer.address, "100000");
  for (const token of tokens) await fund(signer.address, "10000", token);
  const client = new kit.ClobClient({ host: publicURL, chain, signer, creds });
  return { client, signer, creds };
}

// place posts an order, [buys, price, size] of a token, and returns the node's answer, which must
// be that the order is live or matched.
export async function place({ kit }, who, token, [buys, price, size]) {
  const side = buys ? kit.Side.BUY : kit.Side.SELL;
  const placed = await who.client.createAndPostOrder({ tokenID: token, side, price, size });
  ok(["live", "matched"].includes(placed.status), JSON.stringify(placed));
  return placed;
}

// cancel cancels one order that rests.
export async function cancel(who, orderID) {
  const answer = await who.client.cancelOrder({ orderID });
  strictEqual(answer.canceled[0], orderID, JSON.stringify(answer));
}

// cancelToken cancels all orders for a token.
export function cancelToken(who, token) {
  return who.client.cancelMarketOrders({ asset_id: token });
}

// stir lets the maker quote a token on both sides, lets the taker meet the best quotes, and cancels
// some of them: the same orders each time.
export async function stir(t, token, rounds) {
  const { maker, taker } = t;
  for (let i = 0; i < rounds; i++) {
    const quotes = [];
    for (let k = 0; k < prices.bids.length; k++) {
      quotes.push(place(t, maker, token, [true, prices.bids[k], 10 + i + k]));
      quotes.push(place(t, maker, token, [false, prices.asks[k], 12 + i + k]));
    }
    const placed = await Promise.all(quotes);
    await place(t, taker, token, [false, 0.46, 15 + i]); // meets what is bid at 0.47, and rests
    await place(t, taker, token, [true, 0.53, 7 + i]); // meets a part of what is asked at 0.52
    await cancel(maker, placed[0].orderID);
    if (i % 3 === 2) await Promise.all([maker, taker].map((who) => cancelToken(who, token)));
  }
}

// bookOf is a token's book as the node answers for it.
export async function bookOf(token) {
  const response = await fetch(`${publicURL}/book?token_id=${token}`);
  strictEqual(response.status, 200);
  return response.json();
}
