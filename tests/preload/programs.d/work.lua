-- SPDX-License-Identifier: MIT
local t, s = {}, 0
for i = 1, 300000 do
	local k = "k" .. (i * 7919 % 20011)
	t[k] = (t[k] or 0) + i
end
local keys = {}
for k in pairs(t) do keys[#keys + 1] = k end
table.sort(keys)
for i = 1, #keys, 1001 do print(keys[i], t[keys[i]]) end
local parts = {}
for i = 1, 100000 do parts[#parts + 1] = string.rep("x", i % 40) end
local text = table.concat(parts)
print(#text, select(2, text:gsub("x", "yy")))
for round = 1, 30 do
	local list = {}
	for i = 1, 20000 do list[i] = { i, { i * 2 }, tostring(i) } end
	s = s + #list
end
collectgarbage()
print(s, collectgarbage("count") < 100000)
local co = {}
for i = 1, 5000 do co[i] = coroutine.wrap(function() for j = 1, 3 do coroutine.yield(i * j) end end) end
local sum = 0
for j = 1, 3 do for i = 1, 5000 do sum = sum + co[i]() end end
print(sum)
