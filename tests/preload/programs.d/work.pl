# SPDX-License-Identifier: MIT
use strict;
use warnings;
use Config;

my (%h, @list);
for my $i (0 .. 150000) {
	my $k = "key" . ($i * 7919 % 40009);
	$h{$k} .= chr(97 + $i % 26);
	push @list, [$i, $k, { n => $i % 7 }];
}
print scalar(keys %h), " ", scalar(@list), "\n";
my $sum = 0;
$sum += length $h{$_} for sort keys %h;
print "$sum\n";
my $text = join ' ', map { $_->[1] } @list[0 .. 20000];
my $n = () = $text =~ /key(\d*7\d*)/g;
print "$n\n";
(my $other = $text) =~ s/key(\d+)/<$1>/g;
print length($other), "\n";
print join(',', (sort { $b->[2]{n} <=> $a->[2]{n} || $a->[0] <=> $b->[0] } @list)[0]->[0]), "\n";
undef %h;
@list = ();
for my $i (1 .. 20) {
	my $pid = fork;
	if (!$pid) {
		my @x = map { "x" x ($_ % 1000) } 1 .. 5000;
		exit(@x == 5000 ? $i : 0);
	}
	waitpid $pid, 0;
	print $? >> 8, " ";
}
print "\n";
if ($Config{useithreads}) {
	require threads;
	my @t = map {
		threads->create(sub { my %x = map { $_ => "v" x ($_ % 300) } 1 .. 20000; scalar keys %x })
	} 1 .. 4;
	print join(' ', map { $_->join } @t), "\n";
}
my $big = "abc" x 10_000_000;
print length($big), " ", substr($big, -4), "\n";
