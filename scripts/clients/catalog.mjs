// Prints a catalog of made-up markets, as JSON lines, for where no real one is at hand. Ids are
// hashes of numbers, so they are the same every time.
import { createHash } from "node:crypto";

const plain = 4, grouped = 2;
const hash = (text) => createHash("sha256").update(text).digest("hex");
const token = (text) => BigInt(`0x${hash(text)}`).toString();
const dates = { startDate: "2026-01-01T00:00:00Z", endDate: "2036-01-01T00:00:00Z" };

for (let i = 0; i < plain + grouped; i++) {
  const question = `Will sample ${i} come true?`;
  const open = { active: true, closed: false, archived: false };
  const market = {
    id: String(i + 1), question, conditionId: `0x${hash(`condition ${i}`)}`,
    slug: `sample-${i}`, outcomes: '["Yes", "No"]',
    clobTokenIds: JSON.stringify([token(`yes ${i}`), token(`no ${i}`)]),
    enableOrderBook: true, acceptingOrders: true, negRisk: i >= plain,
    orderPriceMinTickSize: 0.01, orderMinSize: 5, marketMakerAddress: "", ...open, ...dates,
  };
  console.log(JSON.stringify({
    id: String(i + 1), ticker: market.slug, slug: market.slug, title: question,
    negRisk: market.negRisk, ...open, ...dates, markets: [market],
  }));
}
