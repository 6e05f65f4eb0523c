-- What wrk runs for `clobench agree`. REQUESTS names a file of requests, each behind its length in
-- a line; without that wrk sends its own GET. At the end it prints a line that bench/agree.go
-- reads: answers, time in microseconds, answers that are no 200, errors, p50, p90.
local requests, next_one = {}, 0

function init(args)
	local name = os.getenv("REQUESTS")
	if not name then return end
	local file = assert(io.open(name, "rb"))
	for line in file:lines() do
		requests[#requests + 1] = file:read(tonumber(line))
	end
	file:close()
	request = function()
		next_one = next_one + 1
		-- Past the end the last one is sent again: the node knows it and answers 400, which fails the turn.
		return requests[math.min(next_one, #requests)]
	end
end

function done(summary, latency, all)
	local e = summary.errors
	io.write(string.format("figures %d %d %d %d %.1f %.1f\n", summary.requests, summary.duration,
		e.status, e.connect + e.read + e.write + e.timeout, latency:percentile(50),
		latency:percentile(90)))
end
