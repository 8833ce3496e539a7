-- Every request of runtally.coordination: one script, one key, so one atomic step on one shard.
--
-- KEYS[1]  the hash of one run; all that its workers share vanishes together or not at all
-- ARGV     operation, epoch, sequence, lane, number in the lane (0: none), the last of the lane that
--          its sender has an answer to, arguments…
-- Answer   'ok', sequence, cancel reason, what the operation says…  or  'lost', why
--
-- Lua's numbers are doubles: whole up to 2^53, which callers keep to. All is kept as text.

local key, operation, epoch = KEYS[1], ARGV[1], ARGV[2]

local function get(field) return redis.call('HGET', key, field) end
local function number(field) return tonumber(get(field) or '0') end
local function text(value) return string.format('%.0f', value) end

-- What is put is written at the end, in one go: it cannot be read back before.
local changes = {}
local function put(field, value)
  changes[#changes + 1] = field
  changes[#changes + 1] = value
end
local function drop(field) redis.call('HDEL', key, field) end

-- A failover to a replica that had not seen the last writes: what was granted by them is unknown.
local function went_back()
  local why = 'its state went back: the server failed over and lost its last writes'
  redis.call('HSET', key, 'broken', why)
  return {'lost', why}
end

local time = redis.call('TIME')
local server_us = tonumber(time[1]) * 1000000 + tonumber(time[2])
local server_ms = math.floor(server_us / 1000)

if operation == 'join' or operation == 'open' or operation == 'reopen' then
  local there = redis.call('HMGET', key, 'epoch', 'broken', 'seq', 'cancel', 'ttl')
  if there[1] and not there[2] then
    return {'ok', there[3], there[4] or '', there[1], there[5]}
  elseif operation ~= 'reopen' and there[2] then
    return {'lost', there[2]}
  elseif operation == 'join' then
    return {'lost', 'no such run is open'}
  end
  -- Arguments: how long a holder that says nothing is believed, how long an idle run is kept (ms),
  -- the highest fencing number so far, then names and units of what budgets had spent before.
  redis.call('DEL', key)
  redis.call('HSET', key, 'epoch', epoch, 'seq', '0', 'clock', '0', 'seen', text(server_ms),
    'ttl', ARGV[7], 'keep', ARGV[8], 'fence', ARGV[9])
  for i = 10, #ARGV, 2 do redis.call('HSET', key, 'spent:' .. ARGV[i], ARGV[i + 1]) end
  redis.call('PEXPIRE', key, ARGV[8])
  return {'ok', '0', '', epoch, ARGV[7]}
end

local lane, count = 'lane:' .. ARGV[4], tonumber(ARGV[5])
local head = redis.call('HMGET', key, 'epoch', 'broken', 'seq', 'ttl', 'clock', 'seen', 'keep',
  'cancel', lane)
if head[1] ~= epoch then
  return {'lost', 'its state vanished: the server was flushed, evicted it, or it was idle too long'}
elseif head[2] then
  return {'lost', head[2]}
elseif tonumber(head[3]) < tonumber(ARGV[3]) then
  return went_back()
end

-- Time passes as it is seen to pass, a quarter of `ttl` at most between two requests: whoever steps
-- the server's clock takes no slot from a holder that renews it.
local sequence, ttl = text(tonumber(head[3]) + 1), tonumber(head[4])
local passed = math.max(0, math.min(server_ms - tonumber(head[6]), math.floor(ttl / 4)))
local now = tonumber(head[5]) + passed
put('clock', text(now))
put('seen', text(server_ms))
put('seq', sequence)

-- The slots of a semaphore (a lease has one): lines of token, when it lapses, fencing number.
local semaphores = {}
local function slots_of(name)
  local found = semaphores[name]
  if found then return found end
  found = {live = {}, count = 0}
  for token, lapses, fence in string.gmatch(get('slots:' .. name) or '', '(%S+) (%d+) (%d+)\n') do
    if tonumber(lapses) > now then
      found.live[token] = {lapses = lapses, fence = fence}
      found.count = found.count + 1
    end
  end
  semaphores[name] = found
  return found
end

local function put_slots()
  for name, found in pairs(semaphores) do
    if found.changed then
      local lines = {}
      for token, slot in pairs(found.live) do
        lines[#lines + 1] = token .. ' ' .. slot.lapses .. ' ' .. slot.fence .. '\n'
      end
      put('slots:' .. name, table.concat(lines))
    end
  end
end

-- The first who names a limit sets it for all.
local function agreed(field, limit)
  local before = get(field)
  if not before then put(field, limit) end
  return before or limit
end

local operations = {}

function operations.acquire(name, token, size)
  local agreed_size = agreed('size:' .. name, size)
  if agreed_size ~= size then return {'differs', agreed_size} end
  local found = slots_of(name)
  local slot = found.live[token]
  if not slot then
    if found.count >= tonumber(size) then return {'busy'} end
    -- Above all before it, also those before a flush: the server's clock has moved on since then.
    slot = {fence = text(math.max(number('fence') + 1, server_us))}
    put('fence', slot.fence)
    found.live[token] = slot
  end
  slot.lapses = text(now + ttl)
  found.changed = true
  return {'held', slot.fence}
end

function operations.release(name, token)
  local found = slots_of(name)
  local was_held = found.live[token] ~= nil
  found.live[token] = nil
  found.changed = was_held
  return {was_held and 'released' or 'not held'}
end

-- Arguments: worker or '', then name and token of each slot. Says which tokens are held no longer.
function operations.beat(worker, ...)
  if worker ~= '' then put('beat:' .. worker, text(server_ms)) end
  local held, lost = {...}, {}
  for i = 1, #held, 2 do
    local found = slots_of(held[i])
    local slot = found.live[held[i + 1]]
    if slot then
      slot.lapses = text(now + ttl)
      found.changed = true
    else
      lost[#lost + 1] = held[i + 1]
    end
  end
  return lost
end

function operations.workers()
  local found = {}
  for _, field in ipairs(redis.call('HKEYS', key)) do
    local worker = string.match(field, '^beat:(.+)$')
    if worker then
      found[#found + 1] = worker
      found[#found + 1] = text(math.max(0, server_ms - number(field)))
    end
  end
  return found
end

-- What is reserved counts as spent until it is settled.
function operations.spend(name, limit, units, reservation)
  local agreed_limit = agreed('limit:' .. name, limit)
  if agreed_limit ~= limit then return {'differs', agreed_limit} end
  local spent = number('spent:' .. name)
  if tonumber(units) > tonumber(limit) - spent then
    return {'exceeded', text(tonumber(limit) - spent)}
  end
  put('spent:' .. name, text(spent + tonumber(units)))
  if reservation ~= '' then put('reserved:' .. name .. ':' .. reservation, units) end
  return {'spent', text(tonumber(limit) - spent - tonumber(units))}
end

function operations.settle(name, reservation, units)
  local field = 'reserved:' .. name .. ':' .. reservation
  local reserved = get(field)
  if not reserved then return {'settled before'} end
  put('spent:' .. name, text(number('spent:' .. name) - tonumber(reserved) + tonumber(units)))
  drop(field)
  return {'settled'}
end

function operations.balance(name, limit)
  local agreed_limit = agreed('limit:' .. name, limit)
  if agreed_limit ~= limit then return {'differs', agreed_limit} end
  return {'balance', text(number('spent:' .. name))}
end

function operations.cancel(reason)
  head[8] = head[8] or reason
  put('cancel', head[8])
  return {}
end

function operations.nothing() return {} end

-- A value is kept behind its version, the id of the request that wrote it last, and a space.
local function value_of(name)
  local kept = get('pad:' .. name)
  if not kept then return '', nil end
  return string.match(kept, '^(%S+) (.*)$')
end

function operations.get(name)
  local version, value = value_of(name)
  if version == '' then return {} end
  return {version, value}
end

function operations.set(name, value, version)
  put('pad:' .. name, version .. ' ' .. value)
  return {}
end

function operations.compare_and_set(name, value, version, expected)
  if value_of(name) ~= expected then return {'differs'} end
  put('pad:' .. name, version .. ' ' .. value)
  return {'set'}
end

function operations.append(name, value, version, most)
  local _, before = value_of(name)
  local longer = (before or '') .. value
  if #longer > tonumber(most) then return {'too long', text(#longer)} end
  put('pad:' .. name, version .. ' ' .. longer)
  return {text(#longer)}
end

function operations.delete(name)
  drop('pad:' .. name)
  return {}
end

-- A request whose answer got lost comes again, and is answered as it was before. One whose sender
-- has gone on to the next of its lane was late on its way, and nobody reads its answer. What its
-- sender had an answer to must be there, whatever others have done since.
local says
if count > 0 then
  local last, before = string.match(head[9] or '0 ', '^(%d+) (.*)$')
  last = tonumber(last)
  if last > count then return {'lost', 'overtaken'} end
  if last < tonumber(ARGV[6]) then return went_back() end
  if last == count then says = cjson.decode(before) end
end

if not says then
  local arguments = {}
  for i = 7, #ARGV do arguments[#arguments + 1] = ARGV[i] end
  says = operations[operation](unpack(arguments))
  if count > 0 then put(lane, ARGV[5] .. ' ' .. cjson.encode(says)) end
end

put_slots()
redis.call('HSET', key, unpack(changes))
redis.call('PEXPIRE', key, head[7])
local answer = {'ok', sequence, head[8] or ''}
for _, each in ipairs(says) do answer[#answer + 1] = each end
return answer
