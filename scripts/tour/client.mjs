// A tour with the public npm client, as published. Arguments: the node's address, a token, a
// private key.
import { Wallet } from "@ethersproject/wallet";
import { ClobClient, OrderType, Side } from "@polymarket/clob-client-v2";
import WebSocket from "ws";

const [host, tokenID, key] = process.argv.slice(2);
const chain = 80002;

// 1. Derive a key: the wallet signs who it is.
const signer = new Wallet(key);
const creds = await new ClobClient({ host, chain, signer }).createOrDeriveApiKey();
const client = new ClobClient({ host, chain, signer, creds });
console.log(`1 key ${creds.key} of ${signer.address}`);

// 2. Quote both sides: who sells must have, so some shares are bought first.
async function order(side, price, size, type = OrderType.GTC) {
  const made = await client.createAndPostOrder({ tokenID, side, price, size }, {}, type);
  if (!made.success) throw new Error(`refused: ${JSON.stringify(made)}`);
  return made.orderID;
}
await order(Side.BUY, 0.99, 10, OrderType.FAK);
const bid = await order(Side.BUY, 0.02, 10);
const ask = await order(Side.SELL, 0.98, 5);
console.log(`2 bid ${bid}, ask ${ask}`);

// 3. Follow the stream, until the bid is there.
const seen = await new Promise((resolve, reject) => {
  const socket = new WebSocket(`${host.replace("http", "ws")}/ws/market`);
  const late = setTimeout(() => reject(new Error("the stream does not show the bid")), 20_000);
  socket.on("error", reject);
  socket.on("open", () => socket.send(JSON.stringify({ type: "market", assets_ids: [tokenID] })));
  socket.on("message", (text) => {
    for (const message of [JSON.parse(text)].flat()) {
      if (!message.bids?.some((level) => level.price === "0.02")) continue;
      clearTimeout(late);
      socket.close();
      resolve(message.event_type);
    }
  });
});
console.log(`3 stream ${seen}`);

// 4. Cancel all.
const { canceled } = await client.cancelAll();
if (!canceled.includes(bid) || !canceled.includes(ask)) throw new Error(`left: ${canceled}`);
console.log(`4 cancelled ${JSON.stringify(canceled)}`);

// 5. Read profit: anybody may ask about a wallet.
let held;
for (let tries = 0; !held && tries < 100; tries++) {
  [held] = await (await fetch(`${host}/positions?user=${signer.address}`)).json();
  if (!held) await new Promise((resolve) => setTimeout(resolve, 100));
}
console.log(`5 ${held.size} shares of ${held.outcome}, profit ${held.cashPnl}`);
