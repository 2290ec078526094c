#!/usr/bin/perl

# Configurations that are refused, and what is said then.

use strict;
use warnings;

use lib 't/lib';
use RonSuite;
use Test::Nginx::Socket 'no_plan';

no_long_string();
run_tests();

__DATA__

=== TEST 1: a second ledger
--- main_config
ron_ledger memory:16m;
ron_ledger sqlite:/tmp/ron-another;
--- must_die
--- error_log
one nginx has one ledger and it is "memory:16m": remove one of them

=== TEST 2: not a ledger
--- main_config
ron_ledger postgres://x;
--- must_die
--- error_log
invalid ledger "postgres://x"

=== TEST 3: too little memory
--- main_config
ron_ledger memory:64k;
--- must_die
--- error_log
at least 1m is needed

=== TEST 4: an unknown hash
--- main_config
ron_ledger sqlite:/tmp/ron-none hash=md5;
--- must_die
--- error_log
invalid hash "md5"

=== TEST 5: an unknown parameter of the ledger
--- main_config
ron_ledger sqlite:/tmp/ron-none sync=off;
--- must_die
--- error_log
invalid parameter "sync=off"

=== TEST 6: a socket that is too long
--- main_config
ron_socket /tmp/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa;
--- must_die
--- error_log
is too long

=== TEST 7: an unknown queue
--- main_config
ron_queue backlog=5;
--- must_die
--- error_log
invalid parameter "backlog=5", the queues are ingress, preval, commit, work, parse and proofs

=== TEST 8: a queue without a number
--- main_config
ron_queue work=many;
--- must_die
--- error_log
invalid number in "work=many"

=== TEST 9: a queue twice
--- main_config
ron_queue work=5 work=6;
--- must_die
--- error_log
duplicate queue "work"

=== TEST 10: a drain that would never end
--- main_config
ron_drain_deadline 30s;
--- must_die
--- error_log
"ron_drain_deadline" must be from 1s to 5s

=== TEST 10a: a lag that any append has
--- main_config
ron_committer_lag_max 0;
--- must_die
--- error_log
"ron_committer_lag_max" must be at least 100ms

=== TEST 11: services without keys
--- http_config
# no ron_keys
--- must_die
--- error_log
there is no "ron_keys"

=== TEST 12: services without a ledger
--- main_config
# no ron_ledger
--- must_die
--- error_log
needs a ledger

=== TEST 13: a zone that is too small
--- http_config
ron_zone ron 1m;
--- must_die
--- error_log
zone "ron" is too small

=== TEST 14: a size that is none
--- http_config
ron_zone ron lots;
--- must_die
--- error_log
invalid zone size "lots"

=== TEST 15: two zones
--- http_config
ron_zone ron 16m;
ron_zone ron2 16m;
--- must_die
--- error_log
"ron_zone" directive is duplicate

=== TEST 16: an asset that cannot be
--- http_config
ron_asset ron "two words";
--- must_die
--- error_log
invalid asset "two words"

=== TEST 17: an asset twice
--- http_config
ron_asset ron ron;
--- must_die
--- error_log
duplicate asset "ron"

=== TEST 18: two services in one location
--- config
location /both/ { ron_wallet; ron_ledger_api; }
--- must_die
--- error_log
has another ron service in its location

=== TEST 19: a service behind a regular expression
--- config
location ~ ^/rx { ron_wallet; }
--- must_die
--- error_log
cannot be in a location with a regular expression

=== TEST 20: health that is neither
--- config
location = /h { ron_health sound; }
--- must_die
--- error_log
invalid value "sound", it must be "live" or "ready"

=== TEST 21: a body that JSON would not take
--- http_config
ron_body_max 2m;
--- must_die
--- error_log
"ron_body_max" must be from 1k to 1m

=== TEST 22: a signing key that is none
--- main_config
ron_signing_key /dev/null;
--- must_die
--- error_log
/dev/null

=== TEST 23: nonces of a third kind
--- http_config
ron_wallet_nonce loose;
--- must_die
--- error_log
invalid value "loose"

=== TEST 24: an old signing key without a new one
--- main_config
ron_signing_key_old /dev/null;
--- must_die
--- error_log
"ron_signing_key_old" announces the key of "ron_signing_key", which is not there

=== TEST 25: a cache of no size
--- main_config
ron_history_cache lots;
--- must_die
--- error_log
"ron_history_cache" directive invalid value

=== TEST 26: history without any time
--- main_config
ron_history_share 0;
--- must_die
--- error_log
value must be between 1 and 100

=== TEST 28: a processor that is no digit
--- main_config
ron_helper_cpu_affinity 0x2;
--- must_die
--- error_log
invalid mask "0x2", it must be digits 0 and 1

=== TEST 29: no processor
--- main_config
ron_helper_cpu_affinity 000;
--- must_die
--- error_log
"ron_helper_cpu_affinity" directive has no processor

=== TEST 30: processors, twice
--- main_config
ron_helper_cpu_affinity 1;
ron_helper_cpu_affinity 1;
--- must_die
--- error_log
"ron_helper_cpu_affinity" directive is duplicate

=== TEST 31: more processors than there can be
--- main_config eval
'ron_helper_cpu_affinity ' . '1' x 1025 . ';'
--- must_die
--- error_log
"ron_helper_cpu_affinity" directive has too many processors
