// A library in the place of NVIDIA's management library, for tests: one board whose counter of
// energy grows by a joule at each reading, and that is busy for a quarter of the time.
#include <stdio.h>

typedef int Result;
enum { SUCCESS = 0 };
struct Utilisation { unsigned gpu, memory; };

static int the_board;
static unsigned long long millijoules;

Result nvmlInit_v2(void) { return SUCCESS; }
Result nvmlShutdown(void) { return SUCCESS; }

Result nvmlDeviceGetCount_v2(unsigned* count) {
    *count = 1;
    return SUCCESS;
}

Result nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
    *device = &the_board;
    return index == 0 ? SUCCESS : 2;
}

Result nvmlDeviceGetName(void* device, char* name, unsigned length) {
    (void)device;
    snprintf(name, length, "Fake Board");
    return SUCCESS;
}

Result nvmlDeviceGetTotalEnergyConsumption(void* device, unsigned long long* energy) {
    (void)device;
    *energy = __atomic_add_fetch(&millijoules, 1000, __ATOMIC_RELAXED);
    return SUCCESS;
}

Result nvmlDeviceGetUtilizationRates(void* device, struct Utilisation* utilisation) {
    (void)device;
    utilisation->gpu = 25;
    utilisation->memory = 0;
    return SUCCESS;
}

const char* nvmlErrorString(Result error) {
    (void)error;
    return "a made-up failure";
}
