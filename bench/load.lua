-- One run of wrk: sends each prepared body once, says what came of it in one line of JSON.
-- Arguments: the file of bodies (none: plain GETs), the number of connections.
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
  if not args[1] then
    return
  end
  local bodies, connections = {}, tonumber(args[2])
  for line in io.lines(args[1]) do
    bodies[#bodies + 1] = line
  end
  local head = "POST " .. wrk.path .. " HTTP/1.1\r\nContent-Type: application/json\r\n"
  for name, value in pairs(wrk.headers) do
    head = head .. name .. ": " .. value .. "\r\n"
  end
  local sent, idle, tried = 0, 0, false

  request = function()
    if not tried then
      tried = true -- wrk asks for one request to look at, and sends it to nobody
    else
      started = started or now()
      sent = sent + 1
    end
    local body = bodies[math.max(sent, 1)]
    if body then
      return head .. "Content-Length: " .. #body .. "\r\n\r\n" .. body
    end
    idle = idle + 1
    if idle == connections then -- the last answer is in: wake wrk, which sleeps until its time is over
      spent = now() - started
      ffi.C.kill(ffi.C.getpid(), SIGINT)
    end
    return ""
  end
end

function done(summary, latency)
  local spent, errors = worker:get("spent"), summary.errors
  print(string.format(
    'bench: {"answers": %d, "seconds": %.6f, "spent": %s, "p50": %.3f, "p99": %.3f, '
      .. '"refused": %d, "broken": %d, "late": %d}',
    summary.requests, spent or summary.duration / 1e6, tostring(spent ~= nil),
    latency:percentile(50) / 1e3, latency:percentile(99) / 1e3,
    errors.status, errors.connect + errors.read + errors.write, errors.timeout
  ))
end
