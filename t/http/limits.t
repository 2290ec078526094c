#!/usr/bin/perl

# Limits that are refused when the configuration is read, with the word that
# is wrong.

use strict;
use warnings;

use lib 't/lib';
use RonSuite;
use Test::Nginx::Socket 'no_plan';

no_long_string();
run_tests();

__DATA__

=== TEST 1: a policy that is not there
--- http_config
ron_policy /nonexistent/policy;
--- must_die
--- error_log
"/nonexistent/policy" failed

=== TEST 2: a policy twice
--- http_config
ron_policy a; ron_policy b;
--- must_die
--- error_log
"ron_policy" directive is duplicate

=== TEST 3: a rate without its unit
--- http_config
ron_rate 5;
--- must_die
--- error_log
invalid rate "5"

=== TEST 4: a rate of 0
--- http_config
ron_rate 0r/s;
--- must_die
--- error_log
invalid rate "0r/s"

=== TEST 5: another word behind a rate
--- http_config
ron_rate 5r/s nodelay;
--- must_die
--- error_log
invalid parameter "nodelay"

=== TEST 6: a burst of 0
--- http_config
ron_rate 5r/s burst=0;
--- must_die
--- error_log
invalid parameter "burst=0"

=== TEST 7: a rate twice
--- http_config
ron_rate 5r/s; ron_rate off;
--- must_die
--- error_log
"ron_rate" directive is duplicate

=== TEST 8: a ceiling that is no amount
--- http_config
ron_wallet_limit op=1e3;
--- must_die
--- error_log
invalid parameter "op=1e3"

=== TEST 9: a ceiling of 0
--- http_config
ron_wallet_limit daily=0;
--- must_die
--- error_log
invalid parameter "daily=0"

=== TEST 10: a ceiling twice
--- http_config
ron_wallet_limit op=5 op=6;
--- must_die
--- error_log
invalid parameter "op=6"

=== TEST 11: a ceiling over what an amount can be
--- http_config
ron_wallet_limit total=340282366920938463463374607431768211455;
--- must_die
--- error_log
invalid parameter "total=340282366920938463463374607431768211455"

=== TEST 12: an unknown ceiling
--- http_config
ron_wallet_limit hour=5;
--- must_die
--- error_log
invalid parameter "hour=5"

=== TEST 13: a day that is less than an operation
--- http_config
ron_wallet_limit op=100 daily=99;
--- must_die
--- error_log
"daily" must not be less than "op"

=== TEST 14: a total that is less than a day
--- http_config
ron_wallet_limit op=1 daily=100 total=99;
--- must_die
--- error_log
"total" must not be less than "daily"

=== TEST 15: a staleness window that is too long
--- http_config
ron_wallet_stale 6s;
--- must_die
--- error_log
invalid time "6s"

=== TEST 16: a body that could become too much
--- http_config
ron_inflate_max 11m;
--- must_die
--- error_log
invalid size "11m"

=== TEST 17: a ratio that is none
--- http_config
ron_inflate_max 1m ratio=x;
--- must_die
--- error_log
invalid parameter "ratio=x"

=== TEST 18: a breaker that never opens
--- http_config
ron_wallet_breaker errors=0;
--- must_die
--- error_log
invalid parameter "errors=0"

=== TEST 19: a breaker with too many probes
--- http_config
ron_wallet_breaker probes=64;
--- must_die
--- error_log
invalid parameter "probes=64"

=== TEST 20: a breaker twice open
--- http_config
ron_wallet_breaker open=1s open=2s;
--- must_die
--- error_log
invalid parameter "open=2s"

=== TEST 21: a breaker with another word
--- http_config
ron_wallet_breaker tries=3;
--- must_die
--- error_log
invalid parameter "tries=3"

=== TEST 22: ron_wallet_shards 0
--- http_config
ron_wallet_shards 0;
--- must_die
--- error_log
invalid number "0"

=== TEST 23: ron_wallet_shards 1025
--- http_config
ron_wallet_shards 1025;
--- must_die
--- error_log
invalid number "1025"

=== TEST 24: ron_key_ttl 59s
--- main_config
ron_key_ttl 59s;
--- must_die
--- error_log
"ron_key_ttl" must be from 1m to 72h

=== TEST 25: ron_key_ttl 73h
--- main_config
ron_key_ttl 73h;
--- must_die
--- error_log
"ron_key_ttl" must be from 1m to 72h
