#!/usr/bin/env bash
# A tour with the programs of this project. Arguments: the node's address, a token, a private key.
set -euo pipefail

url=$1 token=$2 key=$3
clobench=${CLOBENCH:-bin/clobench} clobd=${CLOBD:-bin/clobd}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

order() { # SIDE PRICE SIZE [TYPE]
	"$clobench" order --url "$url" --key "$key" --token "$token" --side "$1" --price "$2" --size "$3" \
		--type "${4:-GTC}" | tail -n 1 | jq -re 'select(.success).orderID'
}

# 1. Derive a key, and keep it where tail can read it.
(umask 077 && "$clobench" key --url "$url" --key "$key" >"$folder/key.json")
address=$(jq -r .address "$folder/key.json")
echo "1 key $(jq -r .apiKey "$folder/key.json") of $address"

# 2. Quote both sides. Every order command derives the key anew: nothing is stored.
order BUY 0.99 10 FAK >/dev/null
bid=$(order BUY 0.02 10)
ask=$(order SELL 0.98 5)
echo "2 bid $bid, ask $ask"

# 3. Follow the stream of the wallet's own orders, from the beginning, until the bid is there.
exec 3< <(exec timeout 60 "$clobd" tail --url "$url" --user "$folder/key.json" --from 1 2>/dev/null)
tail=$!
seen=$(grep -m1 "\"id\":\"$bid\"" <&3 | jq -r '.event_type + " " + .type' || true)
kill "$tail"
[[ $seen ]] || { echo "the stream does not show the bid" >&2; exit 1; }
echo "3 stream $seen"

# 4. Cancel all.
gone=$("$clobench" cancel --url "$url" --key "$key" | jq -c .canceled)
[[ $gone == *"$bid"* && $gone == *"$ask"* ]] || { echo "not cancelled: $gone" >&2; exit 1; }
echo "4 cancelled $gone"

# 5. Read profit: anybody may ask about a wallet.
for _ in {1..100}; do
	profit=$(curl -sSf "$url/positions?user=$address" |
		jq -r '.[] | "\(.size) shares of \(.outcome), profit \(.cashPnl)"')
	[[ -z $profit ]] || break
	sleep 0.1
done
[[ $profit ]] || { echo "no position" >&2; exit 1; }
echo "5 $profit"
