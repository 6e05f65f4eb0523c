#!/usr/bin/env bash
# A tour with curl. The wallet's signatures are clobench's, the HMACs are openssl's; everything else
# is what any program would send. Arguments: the node's address, a token, a private key.
set -euo pipefail

url=$1 token=$2 key=$3
clobench=${CLOBENCH:-bin/clobench}

# ask METHOD PATH [BODY]: a request that an API key signs.
ask() {
	local now hex mac
	now=$(date +%s)
	hex=$(tr -- '-_' '+/' <<<"$secret" | base64 -d | od -An -v -tx1 | tr -d ' \n')
	mac=$(printf '%s' "$now$1$2${3:-}" | openssl dgst -sha256 -mac HMAC -macopt "hexkey:$hex" -binary |
		base64 | tr '+/' '-_')
	curl -sS --fail-with-body -X "$1" "$url$2" -H "POLY_ADDRESS: $address" -H "POLY_API_KEY: $id" \
		-H "POLY_PASSPHRASE: $passphrase" -H "POLY_TIMESTAMP: $now" -H "POLY_SIGNATURE: $mac" \
		-H 'Content-Type: application/json' ${3:+--data-binary "$3"}
}

order() { # SIDE PRICE SIZE [TYPE]
	local body
	body=$("$clobench" sign order --url "$url" --key "$key" --owner "$id" --token "$token" \
		--side "$1" --price "$2" --size "$3" --type "${4:-GTC}")
	ask POST /order "$body" | jq -re 'select(.success).orderID'
}

# 1. Derive a key: the wallet signs who it is.
auth=$("$clobench" sign auth --key "$key")
made=$(curl -sSf -X POST "$url/auth/api-key" -H @- <<<"$auth")
address=$(sed -n 's/^POLY_ADDRESS: //p' <<<"$auth")
id=$(jq -r .apiKey <<<"$made") secret=$(jq -r .secret <<<"$made")
passphrase=$(jq -r .passphrase <<<"$made")
echo "1 key $id of $address"

# 2. Quote both sides: who sells must have, so some shares are bought first.
order BUY 0.99 10 FAK >/dev/null
bid=$(order BUY 0.02 10)
ask=$(order SELL 0.98 5)
echo "2 bid $bid, ask $ask"

# 3. Follow the stream, for longer if the bid is not there yet. curl sends what a WebSocket sends: a
# request, and one frame whose mask is zero.
host=${url#http://}
wish="{\"type\":\"market\",\"assets_ids\":[\"$token\"]}"
if ((${#wish} > 125)); then echo "the frame needs a longer head" >&2; exit 1; fi
follow() { # SECONDS
	{
		printf 'GET /ws/market HTTP/1.1\r\nHost: %s\r\n' "$host"
		printf 'Upgrade: websocket\r\nConnection: Upgrade\r\n'
		printf 'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n'
		sleep 0.5 # until the node has switched
		printf "\\x81\\x$(printf %x $((128 + ${#wish})))\\0\\0\\0\\0%s" "$wish"
		sleep "$1"
	} | curl -sN --max-time "$1" "telnet://$host"
}
for time in 2 6 20; do
	seen=$(follow "$time" | LC_ALL=C grep -a -o '"event_type":"book"[^]]*"price":"0.02"' |
		head -c 19 || true)
	[[ -z $seen ]] || break
done
[[ $seen ]] || { echo "the stream does not show the bid" >&2; exit 1; }
echo "3 stream $seen"

# 4. Cancel all.
gone=$(ask DELETE /cancel-all | jq -c '.canceled')
[[ $gone == *"$bid"* && $gone == *"$ask"* ]] || { echo "not cancelled: $gone" >&2; exit 1; }
echo "4 cancelled $gone"

# 5. Read profit: paper, until somebody buys the shares.
for _ in {1..100}; do # answers about the past may be some Sequences behind
	profit=$(curl -sSf "$url/positions?user=$address" |
		jq -r '.[] | "\(.size) shares of \(.outcome), profit \(.cashPnl)"')
	[[ -z $profit ]] || break
	sleep 0.1
done
[[ $profit ]] || { echo "no position" >&2; exit 1; }
echo "5 $profit"
