-- What wrk sends, by the first argument: cached, new, lists. Says what came of it in one line of JSON.
local kind, salt = "cached", 0
local counter = 0
local threads = {}

function setup(thread)
  thread:set("id", #threads)
  table.insert(threads, thread)
end

function init(args)
  kind = args[1] or kind
  salt = tonumber(args[2] or "0")
  wrk.headers["Content-Type"] = "application/json"
end

local paths = { "/v1/plans?limit=50", "/v1/runs?limit=50", "/v1/plans?limit=50&after=5000", "/v1/runs?limit=50&after=50000" }

function request()
  counter = counter + 1
  if kind == "cached" then
    return wrk.format("POST", "/v1/plans", nil, '{"model":"resnet50","cluster":"lab","workers":32}')
  elseif kind == "new" then
    local seed = salt * 10000000 + id * 1000000 + counter
    return wrk.format("POST", "/v1/plans", nil, '{"model":"resnet50","cluster":"lab","workers":32,"seed":' .. seed .. '}')
  end
  local turn = counter % 6
  if turn < 4 then return wrk.format("GET", paths[turn + 1]) end
  local n = 2 + (counter * 7919 + id * 104729) % 9000
  return wrk.format("GET", (turn == 4 and "/v1/plans/" or "/v1/runs/") .. n)
end

function done(summary, latency, requests)
  local failed = summary.errors.status + summary.errors.connect + summary.errors.read + summary.errors.timeout
  io.write(string.format('{"requests":%d,"seconds":%f,"p50_ms":%f,"p99_ms":%f,"max_ms":%f,"failed":%d}\n',
    summary.requests, summary.duration / 1e6, latency:percentile(50) / 1e3, latency:percentile(99) / 1e3,
    latency.max / 1e3, failed))
end
