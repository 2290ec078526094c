# The client of the chaos and abuse campaigns, and what breaks a server on
# purpose; the top makefile has `include t/chaos/chaos.mk`.

CHAOS_DIR := $(BUILD)/t/chaos
CHAOS_BIN := $(addprefix $(CHAOS_DIR)/,client b3 shim.so)

.PHONY: chaos-build

chaos-build: $(CHAOS_BIN)

$(CHAOS_DIR)/client: t/chaos/client.c
	@mkdir -p $(@D)
	$(call say,CC)$(CC) -std=c11 -D_GNU_SOURCE $(CFLAGS) $(WARN) $(WERROR) \
	    -o $@ $<

$(CHAOS_DIR)/b3: t/chaos/b3.c $(BLAKE3_LIB)
	@mkdir -p $(@D)
	$(call say,CC)$(CC) -std=c11 -D_GNU_SOURCE $(CFLAGS) $(WARN) $(WERROR) \
	    $(BLAKE3_CFLAGS) -o $@ $< $(BLAKE3_LIBS)

.PHONY: abuse

MIN ?= 5

abuse: all chaos-build       ## exactly once while all dies, for MIN minutes
	@RON_ABUSE_SECONDS=$$(( $(MIN) * 60 )) prove -v -It/lib t/42-abuse.t

$(CHAOS_DIR)/shim.so: t/chaos/shim.c
	@mkdir -p $(@D)
	$(call say,CC)$(CC) -std=gnu11 -D_GNU_SOURCE $(CFLAGS) $(WARN) $(WERROR) \
	    -fPIC -shared -o $@ $< -ldl -lpthread

.PHONY: chaos

ROUNDS ?= 5

chaos: all chaos-build       ## faults of machines under load (ROUNDS=n)
	@RON_CHAOS_ROUNDS=$(ROUNDS) prove -v -It/lib t/43-chaos.t

.PHONY: soak

soak: all chaos-build        ## memory, descriptors, processes over MIN minutes
	@RON_SOAK_SECONDS=$$(( $(MIN) * 60 )) prove -v -It/lib t/44-soak.t

# Everything that ends, in its long form: 100 kills of the helper, 100
# reloads, 10 upgrades there and back, 40 deaths of the master.

.PHONY: life

life: all chaos-build        ## deaths, reloads and upgrades, the long form
	@RON_LIFE=1 RON_RELOADS=100 prove -v -It/lib t/50-safe-mode.t \
	    t/51-ipc.t t/52-tasks.t t/53-drain.t t/54-reloads.t t/55-kills.t \
	    t/56-upgrade.t t/57-deaths.t t/58-crowd.t
