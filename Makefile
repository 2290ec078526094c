# ngx_ron: a GNU makefile.  `make help` says what there is.

BUILD   ?= build
CC      ?= gcc
ifeq ($(origin CC),default)
CC      := gcc
endif
CLANG   ?= clang
NGINX   ?= nginx
PREFIX  ?= /usr/local
DESTDIR ?=
MODULES ?= /usr/lib/nginx/modules
DOCDIR  ?= $(PREFIX)/share/doc/ngx_ron

# RON_LISTEN, RON_DATA and RON_WORKERS configure `make run`.
export RON_LISTEN RON_DATA RON_WORKERS
export NGINX
export PATH := $(PATH):/usr/sbin:/sbin

WARN    := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes \
           -Wpointer-arith -Wcast-qual -Wwrite-strings -Wundef -Wvla \
           -Wformat=2
WERROR  ?= -Werror
CFLAGS  ?= -O2 -g
LDFLAGS ?=
SAN     ?=

# `make V=1` shows whole command lines.

ifeq ($(V),1)
say =
else
say = @printf '  %-4s %s\n' '$(1)' '$(patsubst $(CURDIR)/%,%,$@)';
endif

# BLAKE3: the system's, or Debian's source built here (see tools/blake3.sh).

ifeq ($(shell pkg-config --exists libblake3 2>/dev/null && echo yes),yes)
BLAKE3_CFLAGS := $(shell pkg-config --cflags libblake3)
BLAKE3_LIBS   := $(shell pkg-config --libs libblake3)
BLAKE3_LIB    :=
else
BLAKE3_DIR    ?= $(abspath $(BUILD))
BLAKE3_CFLAGS := -DRON_BLAKE3_BUNDLED=1 -isystem $(BLAKE3_DIR)/blake3/include
BLAKE3_LIBS   := $(BLAKE3_DIR)/libblake3.a
BLAKE3_LIB    := $(BLAKE3_DIR)/libblake3.a
endif

export RON_BLAKE3_LIBS = $(BLAKE3_LIBS)

comma    := ,

SRC_DIRS := $(patsubst %/,%,$(sort $(wildcard src/*/)))
INCLUDES := $(addprefix -I,$(SRC_DIRS)) -It/unit
ALL_CFLAGS = -std=c11 -D_GNU_SOURCE $(CFLAGS) $(WARN) $(WERROR) -fPIC \
             -fvisibility=hidden -fno-strict-aliasing $(SAN) $(INCLUDES) \
             $(BLAKE3_CFLAGS)
LIBS     := -lsqlite3 -lyajl -lcrypto -lz -lzstd -lpthread

LIB_SRC  := $(sort $(filter-out src/ctl/%,$(wildcard src/*/*.c)))
CTL_SRC  := $(sort $(wildcard src/ctl/*.c))
UNIT_SRC := $(sort $(wildcard t/unit/*_test.c))
HELP_SRC := $(sort $(wildcard t/unit/lib_*.c))
FUZZ_SRC := $(sort $(wildcard t/fuzz/*_fuzz.c))

LIB_OBJ  := $(LIB_SRC:%.c=$(BUILD)/%.o)
CTL_OBJ  := $(CTL_SRC:%.c=$(BUILD)/%.o)
HELP_OBJ := $(HELP_SRC:%.c=$(BUILD)/%.o)
UNIT_OBJ := $(UNIT_SRC:%.c=$(BUILD)/%.o)
UNIT_BIN := $(UNIT_SRC:%.c=$(BUILD)/%)
FUZZ_BIN := $(FUZZ_SRC:%.c=$(BUILD)/%)

# The order of locks is asserted in unit tests, and with LOCK_CHECK=1 in the
# module too (src/base/ron_lock.h): these four instead of those of libron.a,
# hence -u, and before each of the functions one of ours.

LOCK_OBJ   := $(addprefix $(BUILD)/locked/,ron_port_posix.o ron_log.o \
                ron_lock.o ron_lock_wrap.o)
RON_LOCK_WRAPS := read write recv send connect accept4 epoll_wait \
                sqlite3_open_v2 sqlite3_close sqlite3_exec \
                sqlite3_prepare_v2 sqlite3_prepare_v3 sqlite3_step \
                sqlite3_finalize sqlite3_wal_checkpoint_v2
LOCK_LIB   := $(BUILD)/locked/liblocks.a
LOCK_LIBS  := $(addprefix -Wl$(comma)-u$(comma),ron_mutex_lock ron_log \
                ron_lock_wait __wrap_read) \
              $(addprefix -Wl$(comma)--wrap=,$(RON_LOCK_WRAPS)) \
              $(abspath $(LOCK_LIB))
LOCK_CHECK ?=

# AGAIN=n, for `make bench`: a module that hashes and signs n times more.

AGAIN      ?=
AGAIN_OBJ  := $(BUILD)/t/bench/again.o
AGAIN_LIBS := $(abspath $(AGAIN_OBJ)) \
              $(addprefix -Wl$(comma)--wrap=ron_,digest_leaf digest_leaves digest_node \
                digest_nodes blake3 blake3_update blake3_final note_sign)

RONCTL   := $(if $(CTL_SRC),$(BUILD)/ronctl)
MODULE   := $(if $(and $(wildcard config),$(wildcard ngx_ron_module/*.c)),\
                 $(BUILD)/ngx_ron_module.so)
MODULE   := $(strip $(MODULE))

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SUFFIXES:
.PHONY: all lib ctl units module deps test test-src check asan locks tsan valgrind fuzz-build model \
        install man deb clean help bench run start stop sources flags fuzz-bin \
        fuzz mutants FORCE


all: lib units ctl module    ## libron, ronctl, unit tests, the NGINX module

lib: $(BUILD)/libron.a       ## the ledger as a C library

units: $(UNIT_BIN)           ## the C unit tests, not run

ctl: $(RONCTL)               ## ronctl, the operator's tool
ifeq ($(RONCTL),)
	@echo "make: src/ctl has no source, so there is no ronctl"
endif

module: $(MODULE)            ## ngx_ron_module.so for NGINX_SRC or Debian's
ifeq ($(MODULE),)
	@echo "make: no 'config' or no source in ngx_ron_module, so no module"
endif


# ---- libron, ronctl, unit tests --------------------------------------------

# What a time stamp does not show: other flags, another NGINX, and a source
# that was deleted but whose object is still in the archive.

$(BUILD)/flags.list: TEXT = $(CC) $(ALL_CFLAGS)
$(BUILD)/lib.list: TEXT = $(LIB_SRC)

$(BUILD)/module.list: TEXT = $(NGINX_SRC) $(LOCK_CHECK) $(AGAIN)

$(BUILD)/flags.list $(BUILD)/lib.list $(BUILD)/module.list: FORCE
	@mkdir -p $(@D)
	@echo '$(TEXT)' | cmp -s - $@ || echo '$(TEXT)' >$@

$(BUILD)/libron.a: $(LIB_OBJ) $(BUILD)/lib.list
	@rm -f $@
	$(call say,AR)ar rcs $@ $(LIB_OBJ)

$(BUILD)/%.o: %.c $(BUILD)/flags.list | $(BLAKE3_LIB)
	@mkdir -p $(@D)
	$(call say,CC)$(CC) $(ALL_CFLAGS) -MMD -MP -c $< -o $@

$(BUILD)/ronctl: $(CTL_OBJ) $(BUILD)/libron.a $(BLAKE3_LIB)
	$(call say,LD)$(CC) $(SAN) $(LDFLAGS) -o $@ $(CTL_OBJ) $(BUILD)/libron.a \
	    $(BLAKE3_LIBS) $(LIBS)

# What several unit tests share, t/unit/lib_*.c, is an archive too: a test has
# in it what it uses.

HELP := $(if $(HELP_SRC),$(BUILD)/t/unit/libhelp.a)

$(BUILD)/t/unit/libhelp.a: $(HELP_OBJ)
	@rm -f $@
	$(call say,AR)ar rcs $@ $(HELP_OBJ)

$(BUILD)/locked/%.o: src/base/%.c $(BUILD)/flags.list
	@mkdir -p $(@D)
	$(call say,CC)$(CC) $(ALL_CFLAGS) -DRON_LOCK_CHECK=1 -MMD -MP -c $< -o $@

$(LOCK_LIB): $(LOCK_OBJ)
	@rm -f $@
	$(call say,AR)ar rcs $@ $(LOCK_OBJ)

$(UNIT_OBJ): INCLUDES += -DRON_LOCK_CHECK=1

$(UNIT_BIN): $(BUILD)/%: $(BUILD)/%.o $(HELP) $(BUILD)/libron.a $(BLAKE3_LIB) \
        $(LOCK_LIB)
	$(call say,LD)$(CC) $(SAN) $(LDFLAGS) -o $@ $< $(HELP) $(LOCK_LIBS) \
	    $(BUILD)/libron.a $(BLAKE3_LIBS) $(LIBS) -lm

ifneq ($(BLAKE3_LIB),)
$(BLAKE3_LIB): tools/blake3.sh
	$(call say,LIB)CC='$(CC)' tools/blake3.sh $(BLAKE3_DIR)
endif

-include $(LIB_OBJ:.o=.d) $(CTL_OBJ:.o=.d) $(UNIT_OBJ:.o=.d) \
         $(HELP_OBJ:.o=.d) $(LOCK_OBJ:.o=.d) $(FUZZ_SRC:%.c=$(BUILD)/%.d)


# ---- the NGINX module ------------------------------------------------------

$(AGAIN_OBJ): t/bench/again.c $(BUILD)/flags.list $(BUILD)/module.list
	@mkdir -p $(@D)
	$(call say,CC)$(CC) $(ALL_CFLAGS) -DRON_AGAIN_TIMES=$(AGAIN) -MMD -MP -c $< -o $@

# NGINX_SRC is a source tree of the NGINX that will load the module; empty, it
# is the one that Debian's nginx-dev ships, with the flags of Debian's nginx.

NGINX_SRC ?=

$(BUILD)/ngx_ron_module.so: config $(BUILD)/libron.a $(BLAKE3_LIB) \
        $(BUILD)/module.list $(if $(LOCK_CHECK),$(LOCK_LIB)) \
        $(if $(AGAIN),$(AGAIN_OBJ)) \
        $(wildcard ngx_ron_module/*) $(wildcard src/*/*.h) tools/module.sh tools/commit.sh
	$(call say,MOD)RON_BLAKE3_CFLAGS='$(BLAKE3_CFLAGS)' RON_BLAKE3_LIBS='$(BLAKE3_LIBS)' \
	    RON_LOCK_LIBS='$(if $(LOCK_CHECK),$(LOCK_LIBS))' \
	    RON_AGAIN_LIBS='$(if $(AGAIN),$(AGAIN_LIBS))' \
	    CC='$(CC)' tools/module.sh '$(BUILD)' '$(NGINX_SRC)'


# ---- tests and checks ------------------------------------------------------

T      ?= t
export RON_BUILD = $(abspath $(BUILD))

# As many compilers as processors, unless make was told how many.  Tests wait
# more than they compute: one more of those that t/testrules.yml allows.

JOBS   ?= $(shell nproc)
SPREAD  = $(if $(filter -j%,$(MAKEFLAGS)),,-j $(JOBS))
PROVE  ?= prove -r -It/lib -j $(shell expr $(JOBS) + 1) --timer

deps:
	@tools/deps.sh build test

test: deps                   ## every test; T=t/foo.t for one
	@$(MAKE) --no-print-directory $(SPREAD) all chaos-build sim-build
	@$(if $(CI),tools/prove.sh) $(PROVE) $(T)

check:                       ## warnings, static analysis, layout, lint
	@tools/deps.sh build test check
	@CC='$(CC)' CLANG='$(CLANG)' tools/check.sh '$(BUILD)'

UNIT_TEST = t/01-unit.t

# Servers under the sanitizers: a module that has them in a stock NGINX that
# gets their runtime first.  Not here: what counts system calls or measures,
# and what brings another allocator.  Whatever is waited for may take RON_SLOW
# times as long as usual, and so may what has to be within a time or a size.
# Unit tests also say what leaks; NGINX leaves to its exit what lives as long.

ASAN_FLAGS = -fsanitize=address,undefined -fno-sanitize-recover=all \
             -fno-omit-frame-pointer
ASAN_TESTS = $(UNIT_TEST) $(sort t/06-ronctl.t t/07-format.t \
             t/36-observability.t $(wildcard t/http/*.t) \
             $(filter-out t/05-% t/16-% t/17-% t/43-chaos.t t/44-browser.t \
             t/44-rate.t t/44-soak.t t/60-% t/62-%, \
             $(shell grep -lE '^(use|require) RonTest' t/*.t)))
RON_SLOW  ?= 5

asan:                        ## unit tests and servers under Address-, UBSanitizer
	@$(MAKE) --no-print-directory $(SPREAD) all BUILD=$(BUILD)/asan LOCK_CHECK=1 \
	    $(if $(BLAKE3_DIR),BLAKE3_DIR=$(BLAKE3_DIR)) CFLAGS='-O1 -g' \
	    SAN='$(ASAN_FLAGS)' RON_CC_OPT='-O1 -g $(ASAN_FLAGS)' \
	    RON_LD_OPT='-fsanitize=address,undefined'
	@nm -D $(BUILD)/asan/ngx_ron_module.so | grep -q __asan_init
	@nm $(BUILD)/asan/ngx_ron_module.so | grep -q ron_lock_wait_for
	@$(if $(filter $(UNIT_TEST),$(ASAN_TESTS)),\
	    ASAN_OPTIONS=allocator_may_return_null=1:detect_leaks=1 \
	    RON_BUILD=$(abspath $(BUILD))/asan $(PROVE) $(UNIT_TEST))
	@test -z '$(filter-out $(UNIT_TEST),$(ASAN_TESTS))' || \
	    ASAN_OPTIONS=allocator_may_return_null=1:detect_leaks=0 \
	    RON_SLOW=$(RON_SLOW) RON_SAN='$(ASAN_FLAGS)' \
	    RON_PRELOAD="$$($(CC) -print-file-name=libasan.so)\
 $$($(CC) -print-file-name=libubsan.so)" \
	    RON_BUILD=$(abspath $(BUILD))/asan \
	    $(PROVE) $(filter-out $(UNIT_TEST),$(ASAN_TESTS))

# Servers whose locks have their order asserted, without the sanitizers' cost.

locks: T = $(sort $(filter-out t/16-% t/17-% t/18-% t/60-% t/62-%, \
             $(shell grep -lE '^(use|require) RonTest' t/*.t)))
locks:                       ## servers that assert the order of their locks
	@$(MAKE) --no-print-directory $(SPREAD) ctl module BUILD=$(BUILD)/locks \
	    LOCK_CHECK=1 \
	    $(if $(BLAKE3_DIR),BLAKE3_DIR=$(BLAKE3_DIR))
	@nm $(BUILD)/locks/ngx_ron_module.so | grep -q ron_lock_wait_for
	@RON_BUILD=$(abspath $(BUILD))/locks $(PROVE) $(T)

# Every suite of servers on another NGINX: one that was built in NGINX_SRC, or
# in a copy of it.  Not here: what makes packages of Debian's, and benchmarks.

SRC_DIR   = $(BUILD)/nginx-given
SRC_TESTS = $(sort $(wildcard t/http/*.t) $(filter-out t/16-% t/17-% t/18-% \
            t/60-% t/62-%, $(shell grep -lE '^(use|require) RonTest' t/*.t)))

test-src: T = $(SRC_TESTS)
test-src:                    ## every suite of servers with NGINX_SRC's nginx
	@test -n '$(NGINX_SRC)' || { echo "make: test-src needs NGINX_SRC=<tree>" \
	    >&2; exit 1; }
	@mkdir -p $(SRC_DIR)
	@tools/nginx-src.sh $(SRC_DIR) '$(NGINX_SRC)' >$(SRC_DIR)/where
	@$(MAKE) --no-print-directory $(SPREAD) all chaos-build BUILD=$(SRC_DIR) \
	    NGINX_SRC="$$(cat $(SRC_DIR)/where)" \
	    $(if $(BLAKE3_DIR),BLAKE3_DIR=$(BLAKE3_DIR))
	@nginx=$$(cat $(SRC_DIR)/where)/objs/nginx; $$nginx -v; \
	    RON_BUILD=$(abspath $(SRC_DIR)) NGINX=$$nginx $(PROVE) $(T)

# CI runs those of threads that take little: TSAN_UNITS='service engine lock'.

TSAN_UNITS ?=

tsan:                        ## unit tests under ThreadSanitizer
	@$(MAKE) --no-print-directory $(SPREAD) BUILD=$(BUILD)/tsan \
	    $(if $(TSAN_UNITS),$(TSAN_UNITS:%=$(BUILD)/tsan/t/unit/%_test),units) \
	    $(if $(BLAKE3_DIR),BLAKE3_DIR=$(BLAKE3_DIR)) CFLAGS='-O1 -g' \
	    SAN='-fsanitize=thread -fno-omit-frame-pointer'
	@TSAN_OPTIONS=allocator_may_return_null=1:die_after_fork=0 \
	    RON_BUILD=$(abspath $(BUILD))/tsan prove \
	    $(if $(TSAN_UNITS),-e '' \
	      $(TSAN_UNITS:%=$(BUILD)/tsan/t/unit/%_test),$(UNIT_TEST))

VALGRIND_TESTS = $(filter-out %/kill_test %/powercut_test,$(UNIT_BIN))

# Some forty times slower, so there are fewer random histories, and of what can
# fail only each 32nd fails; every test is run, whatever the ones before it said.

valgrind: units              ## unit tests under valgrind
	@bad=0; for t in $(VALGRIND_TESTS); do \
	    n=; case $$t in *property_test) n='RON_N=400 RON_SQLITE_N=30';; \
	                    *fault_test) n='RON_FAULT_EVERY=32';; esac; \
	    env $$n RON_UNDER_VALGRIND=1 valgrind -q --error-exitcode=99 \
	        --leak-check=full --errors-for-leak-kinds=definite \
	        $$t >$$t.valgrind 2>&1 \
	    && echo "ok   $$(basename $$t)" \
	    || { echo "FAIL $$(basename $$t), see $$t.valgrind"; bad=1; }; \
	done; exit $$bad

ifneq ($(BLAKE3_LIB),)
asan locks test-src tsan fuzz-build: $(BLAKE3_LIB)
endif

fuzz-build:                  ## the libFuzzer targets in t/fuzz
	@test -n '$(FUZZ_SRC)' || { echo "make: t/fuzz has no target" >&2; exit 1; }
	@tools/deps.sh build check
	@$(MAKE) --no-print-directory $(SPREAD) fuzz-bin BUILD=$(BUILD)/fuzz CC='$(CLANG)' \
	    $(if $(BLAKE3_DIR),BLAKE3_DIR=$(BLAKE3_DIR)) CFLAGS='-O1 -g' \
	    SAN='-fsanitize=fuzzer-no-link,address,undefined'

fuzz-bin: $(FUZZ_BIN)

$(FUZZ_BIN): $(BUILD)/%: $(BUILD)/%.o $(HELP) $(BUILD)/libron.a
	$(call say,LD)$(CC) $(SAN) -fsanitize=fuzzer $(LDFLAGS) -o $@ $< $(HELP) \
	    $(BUILD)/libron.a \
	    $(BLAKE3_LIBS) $(LIBS) -lm

fuzz: SECONDS = $(if $(filter t,$(T)),60,$(T))
fuzz: fuzz-build             ## every fuzz target for T=60 seconds
	@tools/fuzz.sh '$(BUILD)' $(SECONDS)

mutants: $(BLAKE3_LIB)       ## do the tests notice wrong money code?
	@MAKE='$(MAKE)' BLAKE3_DIR='$(BLAKE3_DIR)' tools/mutate.sh '$(BUILD)'

model:                       ## model-checking of the protocols in t/model
	@test -x t/model/run || { echo "make: there is no t/model/run" >&2; exit 1; }
	@BUILD='$(BUILD)' t/model/run

QUICK  ?=
ROUNDS ?=

bench:                       ## beside a floor and peers; QUICK=1: 3 minutes
	@tools/deps.sh build bench
	@$(MAKE) --no-print-directory ctl module
	@$(MAKE) --no-print-directory module AGAIN=4 BUILD=$(BUILD)/again \
	    BLAKE3_DIR=$(abspath $(BUILD))
	@t/bench/run.pl $(if $(QUICK),--quick) \
	    $(if $(ROUNDS),--rounds $(ROUNDS)) $(BENCH_ARGS)


# ---- running and installing ------------------------------------------------

run start stop: %:           ## a server in front; in the background; its end
	@test -x tools/run.sh \
	    || { echo "make: tools/run.sh is not there yet, so there is no" \
	              "'make $@'" >&2; exit 1; }
	@test '$@' = stop || tools/deps.sh build
	@test '$@' = stop \
	    || $(MAKE) --no-print-directory -j "$$(nproc)" ctl module
	@BUILD='$(BUILD)' tools/run.sh $@

install: ctl module man      ## under DESTDIR, PREFIX and MODULES
	install -D -m 755 $(RONCTL) $(DESTDIR)$(PREFIX)/bin/ronctl
	install -D -m 644 $(MODULE) $(DESTDIR)$(MODULES)/ngx_ron_module.so
	install -D -m 644 $(BUILD)/ronctl.8 \
	    $(DESTDIR)$(PREFIX)/share/man/man8/ronctl.8
	install -d $(DESTDIR)$(PREFIX)/share/bash-completion/completions
	$(RONCTL) completion bash \
	    >$(DESTDIR)$(PREFIX)/share/bash-completion/completions/ronctl
	install -d $(DESTDIR)$(DOCDIR)/examples
	install -m 644 conf/examples/*.conf $(DESTDIR)$(DOCDIR)/examples

man: $(BUILD)/ronctl.8       ## the manual page of ronctl

$(BUILD)/ronctl.8: $(RONCTL) tools/man.sh
	$(call say,MAN)tools/man.sh $(RONCTL) >$@

deb: $(BLAKE3_LIB)           ## a Debian package, libnginx-mod-ron
	@tools/deps.sh build test
	@BLAKE3_DIR='$(BLAKE3_DIR)' tools/deb.sh '$(BUILD)'

sources:                     ## every source that is built from src
	@printf '%s\n' $(LIB_SRC) $(CTL_SRC)

flags:
	@echo '$(ALL_CFLAGS)'

clean:                       ## removes BUILD
	rm -rf $(BUILD)

help:                        ## this text
	@echo "usage: make [target] [variable=value]"
	@echo
	@sed -n 's/^\([a-z -]*\):[^#]*## /\1@/p' Makefile $(MORE) \
	    | while IFS=@ read -r name text; do \
	          printf '  %-14s %s\n' "$$name" "$$text"; done
	@echo
	@echo "  BUILD         where everything is built   ($(BUILD))"
	@echo "  CC            C compiler                  ($(CC))"
	@echo "  NGINX         the server to run           ($(NGINX))"
	@echo "  NGINX_SRC     its source tree             (Debian's nginx-dev)"
	@echo "  T             the tests to run            ($(T))"
	@echo "  RON_LISTEN RON_DATA RON_WORKERS           for run and start"
	@echo "  DESTDIR PREFIX MODULES DOCDIR             for install"

MORE := t/sim/sim.mk t/chaos/chaos.mk

include $(MORE)
