-- One run of wrk: sends each prepared request once and prints the outcome as one line of JSON.
-- Arguments: the file of requests, each ended by a zero byte, and the number of connections.
local ffi = require("ffi")
ffi.cdef([[
  typedef struct { long s; long ns; } moment;
  int clock_gettime(int clock, moment *now);
  int getpid(void);
  int kill(int process, int signal);
]])
local MONOTONIC, SIGINT = 1, 2

local function now()
  local at = ffi.new("moment")
  ffi.C.clock_gettime(MONOTONIC, at)
  return tonumber(at.s) + tonumber(at.ns) / 1e9
end

local worker -- there is one: `-t1`

function setup(thread)
  worker = thread
end

function init(args)
  local requests, connections = {}, tonumber(args[2])
  for one in assert(io.open(args[1])):read("*a"):gmatch("[^%z]+") do
    requests[#requests + 1] = one
  end
  local sent, idle, tried = 0, 0, false

  request = function()
    if not tried then
      tried = true -- wrk first takes one request that it never sends
    else
      started = started or now()
      sent = sent + 1
    end
    local one = requests[math.max(sent, 1)]
    if one then
      return one
    end
    idle = idle + 1
    if idle == connections then -- the last response was received: wake wrk, which sleeps until its time is over
      spent = now() - started
      ffi.C.kill(ffi.C.getpid(), SIGINT)
    end
    return ""
  end
end

function done(summary, latency)
  local errors = summary.errors
  print(string.format(
    'bench: {"responses": %d, "seconds": %.6f, "p50": %.3f, "p99": %.3f, "max": %.3f, "refused": %d, "broken": %d, "late": %d}',
    summary.requests, worker:get("spent") or summary.duration / 1e6,
    latency:percentile(50) / 1e3, latency:percentile(99) / 1e3, latency.max / 1e3,
    errors.status, errors.connect + errors.read + errors.write, errors.timeout
  ))
end
