# SPDX-License-Identifier: MIT
require 'digest'
require 'json'
require 'zlib'
h = Hash.new(0)
200_000.times { |i| h["k#{i * 7919 % 20011}"] += i }
puts h.size, Digest::SHA256.hexdigest(h.sort.to_s)
text = JSON.generate((0...20_000).map { |i| { i: i, s: 'x' * (i % 90), a: [i] * 3 } })
puts text.size, JSON.parse(text).size, Zlib::Inflate.inflate(Zlib::Deflate.deflate(text)) == text
sums = 4.times.map do |n|
  Thread.new { (0...30_000).map { |i| 'a' * ((i * n) % 500) }.sum(&:size) }
end.map(&:value)
puts sums.inspect
10.times do |i|
  pid = fork { exit!((0...20_000).map { |x| [x, x.to_s] }.size == 20_000 ? i : 99) }
  Process.wait(pid)
  print $?.exitstatus, ' '
end
puts
big = (1..2000).inject(:*)
puts big.to_s.size, (text * 20).gsub(/x+/) { |m| m.size.to_s }.size
GC.start
GC.compact if GC.respond_to?(:compact)
200.times { Thread.new { 'y' * 10_000 }.join }
fibers = (0...2000).map { |i| Fiber.new { Fiber.yield i; i * 2 } }
puts fibers.sum { |f| f.resume + f.resume }
