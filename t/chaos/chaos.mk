# The client of the chaos and abuse campaigns, and what breaks a server on
# purpose; the top makefile has `include t/chaos/chaos.mk`.

CHAOS_DIR := $(BUILD)/t/chaos
CHAOS_BIN := $(addprefix $(CHAOS_DIR)/,client cut b3 shim.so trace.so)

.PHONY: chaos-build

chaos-build: $(CHAOS_BIN)

$(CHAOS_DIR)/client $(CHAOS_DIR)/cut: $(CHAOS_DIR)/%: t/chaos/%.c
	@mkdir -p $(@D)
	$(call say,CC)$(CC) -std=c11 -D_GNU_SOURCE $(CFLAGS) $(WARN) $(WERROR) \
	    -o $@ $<

$(CHAOS_DIR)/cut $(CHAOS_DIR)/trace.so: t/chaos/trace.h

$(CHAOS_DIR)/b3: t/chaos/b3.c $(BLAKE3_LIB)
	@mkdir -p $(@D)
	$(call say,CC)$(CC) -std=c11 -D_GNU_SOURCE $(CFLAGS) $(WARN) $(WERROR) \
	    $(BLAKE3_CFLAGS) -o $@ $< $(BLAKE3_LIBS)

.PHONY: abuse

MIN ?= 5

abuse: all chaos-build       ## exactly once while all dies, for MIN minutes
	@RON_ABUSE_SECONDS=$$(( $(MIN) * 60 )) prove -v -It/lib t/42-abuse.t

$(CHAOS_DIR)/shim.so $(CHAOS_DIR)/trace.so: $(CHAOS_DIR)/%.so: t/chaos/%.c
	@mkdir -p $(@D)
	$(call say,CC)$(CC) -std=gnu11 -D_GNU_SOURCE $(CFLAGS) $(WARN) $(WERROR) \
	    -fPIC -shared -o $@ $< -ldl -lpthread

.PHONY: chaos

chaos: all chaos-build       ## faults of machines under load (ROUNDS=n)
	@RON_CHAOS_ROUNDS=$(or $(ROUNDS),5) prove -v -It/lib t/43-chaos.t

.PHONY: cuts

CUTS ?= 200

cuts: all chaos-build        ## power cuts of a recorded server (CUTS=n)
	@RON_CUTS=$(CUTS) prove -v -It/lib t/43-cuts.t

.PHONY: soak

# RATE=10000: payments at that rate, 1 % of them twice, fewer than 0.3 % fail.

soak: all chaos-build        ## memory, descriptors, processes over MIN minutes
	@RON_SOAK_SECONDS=$$(( $(MIN) * 60 )) RON_SOAK_RATE=$(RATE) \
	    prove -v -It/lib $(if $(RATE),t/44-rate.t,t/44-soak.t)

.PHONY: overload

overload: all                ## 25 000/s to a committer of 5 000/s
	@RON_OVERLOAD=1 prove -v -It/lib t/33-queues.t

# Everything that ends, in its long form: 100 kills of the helper, 100
# reloads, 10 upgrades there and back, 40 deaths of the master.

.PHONY: life

life: all chaos-build        ## deaths, reloads and upgrades, the long form
	@RON_LIFE=1 RON_RELOADS=100 prove -v -It/lib t/50-safe-mode.t \
	    t/51-ipc.t t/52-tasks.t t/53-drain.t t/54-reloads.t t/55-kills.t \
	    t/56-upgrade.t t/57-deaths.t t/58-crowd.t t/59-restart.t
