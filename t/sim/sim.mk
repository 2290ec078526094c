# The simulator; the top makefile has `include t/sim/sim.mk`.
#
#     make sim SEED=17        one seed, with its trace if it fails
#     make sim SEEDS=1000     seeds 1 to 1000
#     make sim-small          the small configurations, explored;
#                             PREEMPT=3: with so many preemptions

SEED  ?= 1
SEEDS ?= 1
PREEMPT ?=

SIM_SRC  := $(sort $(wildcard t/sim/*.c))
SIM_OBJ  := $(SIM_SRC:%.c=$(BUILD)/%.o)
SIM_WRAP := epoll_create1 epoll_ctl epoll_wait eventfd read write close socket \
            bind listen accept4 connect recv send getsockopt chmod stat \
            geteuid getpid

$(SIM_OBJ): INCLUDES += -It/sim

$(BUILD)/t/sim/sim: $(SIM_OBJ) $(BUILD)/libron.a $(BLAKE3_LIB)
	$(call say,LD)$(CC) $(SAN) $(LDFLAGS) -o $@ $(SIM_OBJ) \
	    $(BUILD)/libron.a $(BLAKE3_LIBS) $(LIBS) \
	    $(addprefix -Wl$(comma)--wrap=,$(SIM_WRAP))

.PHONY: sim sim-build sim-small

sim-build: $(BUILD)/t/sim/sim

sim: $(BUILD)/t/sim/sim      ## seeds of the simulator (SEED=n, SEEDS=n)
	@$(BUILD)/t/sim/sim $(SEED) $(SEEDS)

sim-small: $(BUILD)/t/sim/sim   ## the simulator's small configurations, explored
	@$(BUILD)/t/sim/sim small $(PREEMPT)

-include $(SIM_OBJ:.o=.d)
