-- The peer behind nginx with Lua: idempotency, nonce, two balances and a
-- history entry in one Redis script, and as little around it as possible.

local cjson = require('cjson.safe')

local peer = {}

-- KEYS: idempotency key, payer, payee.  ARGV: amount, nonce, entry.
-- Answers the seq, or a refusal; a replay answers the first one's seq.
local script = [[
local seen = redis.call('GET', KEYS[1])
if seen then return seen end
local payer = redis.call('HMGET', KEYS[2], 'balance', 'nonce')
local amount = tonumber(ARGV[1])
if tonumber(payer[1] or '0') < amount then return 'insufficient' end
if tonumber(payer[2] or '0') >= tonumber(ARGV[2]) then return 'nonce' end
redis.call('HINCRBY', KEYS[2], 'balance', -amount)
redis.call('HSET', KEYS[2], 'nonce', ARGV[2])
redis.call('HINCRBY', KEYS[3], 'balance', amount)
local seq = redis.call('INCR', 'seq')
redis.call('RPUSH', 'history', ARGV[3])
redis.call('SET', KEYS[1], seq, 'EX', 86400)
return tostring(seq)
]]

local sha

local function command(...)
    local parts = { '*', select('#', ...), '\r\n' }
    for i = 1, select('#', ...) do
        local s = tostring((select(i, ...)))
        parts[#parts + 1] = '$' .. #s .. '\r\n' .. s .. '\r\n'
    end
    return table.concat(parts)
end

local function answer(sock)
    local line, err = sock:receive()
    if not line then return nil, err end
    local kind, rest = line:sub(1, 1), line:sub(2)
    if kind == '$' then
        local len = tonumber(rest)
        if len < 0 then return false end
        local data = sock:receive(len + 2)
        return data and data:sub(1, len)
    elseif kind == '-' then
        return nil, rest
    end
    return rest
end

local function open(path)
    local sock = ngx.socket.tcp()
    sock:settimeouts(5000, 5000, 5000)
    local ok, err = sock:connect('unix:' .. path)
    if not ok then
        ngx.log(ngx.ERR, err)
        return ngx.exit(503)
    end
    if not sha then
        sock:send(command('SCRIPT', 'LOAD', script))
        sha = answer(sock)
    end
    return sock
end

function peer.transfer(path)
    ngx.req.read_body()
    local body = ngx.req.get_body_data()
    local op = cjson.decode(body or '')
    local key = ngx.var.http_idempotency_key
    if not op or not key then return ngx.exit(400) end

    local sock = open(path)
    sock:send(command('EVALSHA', sha, 3, 'key:' .. op.from .. ':' .. key,
                      'acc:' .. op.from, 'acc:' .. op.to, op.amount_minor,
                      string.format('%.0f', op.nonce), body))
    local seq, err = answer(sock)
    if not seq then
        ngx.log(ngx.ERR, err)
        return ngx.exit(503)
    end
    sock:setkeepalive(60000, 1024)

    if not tonumber(seq) then
        ngx.status = 409
        ngx.print('{"code":"' .. seq .. '"}\n')
        return
    end

    ngx.print('{"op":"transfer","from":"', op.from, '","to":"', op.to,
              '","asset":"', op.asset, '","amount_minor":"', op.amount_minor,
              '","nonce":', string.format('%.0f', op.nonce), ',"idem":"', key,
              '","seq":', seq, '}\n')
end

-- Money for the accounts of a run: not measured.
function peer.issues(path)
    ngx.req.read_body()
    local batch = cjson.decode(ngx.req.get_body_data() or '')
    if not batch then return ngx.exit(400) end

    local sock = open(path)
    local all = {}
    for _, op in ipairs(batch.ops) do
        all[#all + 1] = command('HINCRBY', 'acc:' .. op.to, 'balance',
                                op.amount_minor)
    end
    sock:send(table.concat(all))
    for _ = 1, #all do
        if not answer(sock) then return ngx.exit(503) end
    end
    sock:setkeepalive(60000, 1024)
    ngx.print('{"accepted":true}\n')
end

return peer
