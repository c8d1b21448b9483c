// A library in the place of NVIDIA's driver, for tests: memory of the "GPU" is that of the host,
// copies and fills are done at once, and launches are counted, not executed.
//
// Environment variables choose what goes wrong:
//   FAKE_CUDA_VERSION      version of the driver, by default 12080
//   FAKE_CUDA_DEVICES      number of GPUs, by default 1
//   FAKE_CUDA_SM           compute capability, by default 90
//   FAKE_CUDA_MEMORY       bytes of GPU memory, by default 1 GiB
//   FAKE_CUDA_PINNED       bytes of memory that can be locked, by default 1 GiB
//   FAKE_CUDA_FAIL_LAUNCH  launch (from 1) after which every call fails
//   FAKE_CUDA_FAIL_CODE    the error of these calls, by default 700
//   FAKE_CUDA_HANG_LAUNCH  launch (from 1) after which no event is ever done
//   FAKE_CUDA_NO_INIT      cuInit fails with this error
//   FAKE_CUDA_SQUARES      probe_squares is executed; other kernels never are
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef int Result;
enum { SUCCESS = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NO_DEVICE = 100, INVALID_DEVICE = 101,
       INVALID_IMAGE = 200, INVALID_HANDLE = 400, NOT_FOUND = 500, NOT_READY = 600,
       ILLEGAL_ADDRESS = 700 };

struct Event { uint64_t recorded; int is_stuck; };
struct Stream { uint64_t waits; };
struct Function { int shared_max; };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct Function the_function, squares_function;
static int the_context;
static uint64_t now = 1, launches, failed, finished;
static int64_t device_bytes, pinned_bytes, allocations, events, streams, modules, contexts;
static uint64_t waits, last_wait_stream, last_record_stream;
enum { LOCKS_MAX = 4096 };
// Memory of others that is page-locked.
static struct { void* start; size_t bytes; } locked[LOCKS_MAX];
static int locks;
static _Thread_local void* current[16];
static _Thread_local int depth;

static int64_t number(const char* name, int64_t otherwise) {
    const char* text = getenv(name);
    return text ? atoll(text) : otherwise;
}

static int64_t gpu_bytes(void) { return number("FAKE_CUDA_MEMORY", 1 << 30); }

// Every call that needs a context begins with this.
static Result ready(void) {
    if (failed) return (Result)failed;
    return depth > 0 ? SUCCESS : 201;
}

// What tests ask.
int64_t fake_device_bytes(void) { return device_bytes; }
int64_t fake_pinned_bytes(void) { return pinned_bytes; }
int64_t fake_live(void) { return locks + allocations + events + streams + modules + contexts; }
int64_t fake_modules(void) { return modules; }
uint64_t fake_launches(void) { return launches; }
uint64_t fake_waits(void) { return waits; }
uint64_t fake_last_wait_stream(void) { return last_wait_stream; }
uint64_t fake_last_record_stream(void) { return last_record_stream; }
int fake_shared_max(void) { return the_function.shared_max; }
int fake_depth(void) { return depth; }
int64_t fake_recover(void) { failed = 0; return 0; }
void fake_fail(int code) { failed = (uint64_t)code; }
// The work that hangs ends.
int64_t fake_finish(void) { finished = 1; return 0; }

Result cuDriverGetVersion(int* version) {
    *version = (int)number("FAKE_CUDA_VERSION", 12080);
    return SUCCESS;
}

Result cuInit(unsigned flags) {
    (void)flags;
    if (getenv("FAKE_CUDA_NO_INIT")) return (Result)number("FAKE_CUDA_NO_INIT", 0);
    return number("FAKE_CUDA_DEVICES", 1) ? SUCCESS : NO_DEVICE;
}

Result cuDeviceGetCount(int* count) {
    *count = (int)number("FAKE_CUDA_DEVICES", 1);
    return SUCCESS;
}

Result cuDeviceGet(int* device, int index) {
    *device = index;
    return index < number("FAKE_CUDA_DEVICES", 1) ? SUCCESS : INVALID_DEVICE;
}

Result cuDeviceGetName(char* name, int length, int device) {
    snprintf(name, (size_t)length, "Fake GPU %d", device);
    return SUCCESS;
}

Result cuDeviceGetPCIBusId(char* name, int length, int device) {
    snprintf(name, (size_t)length, "0000:%02x:00.0", device + 1);
    return SUCCESS;
}

Result cuDeviceTotalMem_v2(size_t* bytes, int device) {
    (void)device;
    *bytes = (size_t)gpu_bytes();
    return SUCCESS;
}

Result cuDeviceGetAttribute(int* value, int which, int device) {
    (void)device;
    int sm = (int)number("FAKE_CUDA_SM", 90);
    switch (which) {
    case 75: *value = sm / 10; return SUCCESS;
    case 76: *value = sm % 10; return SUCCESS;
    case 16: *value = 132; return SUCCESS;
    case 97: *value = 232448; return SUCCESS;
    default: return INVALID_VALUE;
    }
}

Result cuDevicePrimaryCtxRetain(void** context, int device) {
    (void)device;
    *context = &the_context;
    __atomic_add_fetch(&contexts, 1, __ATOMIC_RELAXED);
    return SUCCESS;
}

Result cuDevicePrimaryCtxRelease_v2(int device) {
    (void)device;
    __atomic_sub_fetch(&contexts, 1, __ATOMIC_RELAXED);
    return SUCCESS;
}

Result cuCtxGetCurrent(void** context) {
    *context = depth > 0 ? current[depth - 1] : NULL;
    return SUCCESS;
}

Result cuCtxPushCurrent_v2(void* context) {
    if (depth == 16) return INVALID_VALUE;
    current[depth++] = context;
    return SUCCESS;
}

Result cuCtxPopCurrent_v2(void** context) {
    if (depth == 0) return 201;
    *context = current[--depth];
    return SUCCESS;
}

static int is_stuck(void) {
    int64_t hang = number("FAKE_CUDA_HANG_LAUNCH", 0);
    return hang > 0 && launches >= (uint64_t)hang && !__atomic_load_n(&finished, __ATOMIC_RELAXED);
}

Result cuCtxSynchronize(void) {
    while (is_stuck()) usleep(1000);
    return ready();
}

Result cuMemGetInfo_v2(size_t* free_bytes, size_t* total) {
    if (ready()) return ready();
    *total = (size_t)gpu_bytes();
    *free_bytes = (size_t)(gpu_bytes() - device_bytes);
    return SUCCESS;
}

// Memory with its size before it, counted in `total`, which has a limit.
static Result allocate(void** memory, size_t bytes, int64_t* total, int64_t limit) {
    if (ready()) return ready();
    if (bytes == 0) return INVALID_VALUE;
    pthread_mutex_lock(&lock);
    int is_too_much = *total + (int64_t)bytes > limit;
    char* start = is_too_much ? NULL : aligned_alloc(256, (bytes + 511) / 256 * 256);
    if (start) {
        *(size_t*)start = bytes;
        memset(start + 256, 0xa5, bytes);
        *memory = start + 256;
        *total += (int64_t)bytes;
        allocations += 1;
    }
    pthread_mutex_unlock(&lock);
    return start ? SUCCESS : OUT_OF_MEMORY;
}

static Result deallocate(char* memory, int64_t* total) {
    if (ready()) return ready();
    if (is_stuck()) {
        fputs("memory is freed while a kernel hangs: the driver would never return\n", stderr);
        abort();
    }
    pthread_mutex_lock(&lock);
    *total -= (int64_t)*(size_t*)(memory - 256);
    allocations -= 1;
    pthread_mutex_unlock(&lock);
    free(memory - 256);
    return SUCCESS;
}

Result cuMemAlloc_v2(uint64_t* address, size_t bytes) {
    return allocate((void**)address, bytes, &device_bytes, gpu_bytes());
}

Result cuMemFree_v2(uint64_t address) { return deallocate((char*)address, &device_bytes); }

Result cuMemHostAlloc(void** memory, size_t bytes, unsigned flags) {
    (void)flags;
    return allocate(memory, bytes, &pinned_bytes, number("FAKE_CUDA_PINNED", 1 << 30));
}

Result cuMemFreeHost(void* memory) { return deallocate(memory, &pinned_bytes); }

Result cuMemHostRegister_v2(void* memory, size_t bytes, unsigned flags) {
    if (ready()) return ready();
    if (!memory || !bytes || flags != 1) return INVALID_VALUE;
    if (locks == LOCKS_MAX || pinned_bytes + (int64_t)bytes > number("FAKE_CUDA_PINNED", 1 << 30))
        return OUT_OF_MEMORY;
    pthread_mutex_lock(&lock);
    locked[locks].start = memory;
    locked[locks++].bytes = bytes;
    pinned_bytes += (int64_t)bytes;
    pthread_mutex_unlock(&lock);
    return SUCCESS;
}

Result cuMemHostUnregister(void* memory) {
    if (ready()) return ready();
    pthread_mutex_lock(&lock);
    int at = 0;
    while (at < locks && locked[at].start != memory) at++;
    int is_known = at < locks;
    if (is_known) {
        pinned_bytes -= (int64_t)locked[at].bytes;
        locked[at] = locked[--locks];
    }
    pthread_mutex_unlock(&lock);
    return is_known ? SUCCESS : 713;
}

Result cuStreamCreate(void** stream, unsigned flags) {
    if (ready()) return ready();
    if (flags != 1) return INVALID_VALUE;
    *stream = calloc(1, sizeof(struct Stream));
    __atomic_add_fetch(&streams, 1, __ATOMIC_RELAXED);
    return SUCCESS;
}

Result cuStreamDestroy_v2(void* stream) {
    if (ready()) return ready();
    free(stream);
    __atomic_sub_fetch(&streams, 1, __ATOMIC_RELAXED);
    return SUCCESS;
}

Result cuStreamQuery(void* stream) {
    (void)stream;
    if (ready()) return ready();
    return is_stuck() ? NOT_READY : SUCCESS;
}

Result cuStreamSynchronize(void* stream) {
    (void)stream;
    return ready();
}

Result cuStreamWaitEvent(void* stream, struct Event* event, unsigned flags) {
    if (ready()) return ready();
    if (flags || !event->recorded) return INVALID_VALUE;
    waits += 1;
    last_wait_stream = (uint64_t)stream;
    return SUCCESS;
}

Result cuEventCreate(struct Event** event, unsigned flags) {
    (void)flags;
    if (ready()) return ready();
    *event = calloc(1, sizeof(struct Event));
    __atomic_add_fetch(&events, 1, __ATOMIC_RELAXED);
    return SUCCESS;
}

Result cuEventDestroy_v2(struct Event* event) {
    if (ready()) return ready();
    free(event);
    __atomic_sub_fetch(&events, 1, __ATOMIC_RELAXED);
    return SUCCESS;
}

Result cuEventRecord(struct Event* event, void* stream) {
    if (ready()) return ready();
    event->recorded = __atomic_fetch_add(&now, 1, __ATOMIC_RELAXED);
    event->is_stuck = is_stuck();
    last_record_stream = (uint64_t)stream;
    return SUCCESS;
}

Result cuEventQuery(struct Event* event) {
    if (ready()) return ready();
    return event->is_stuck && is_stuck() ? NOT_READY : SUCCESS;
}

Result cuEventElapsedTime(float* milliseconds, struct Event* from, struct Event* to) {
    if (ready()) return ready();
    if (!from->recorded || !to->recorded) return INVALID_HANDLE;
    *milliseconds = (float)(to->recorded - from->recorded);
    return SUCCESS;
}

// What the compiler for tests writes begins with "fake", a cubin with the magic of ELF.
Result cuModuleLoadData(void** module, const void* image) {
    if (ready()) return ready();
    if (memcmp(image, "fake", 4) && memcmp(image, "\177ELF", 4)) return INVALID_IMAGE;
    *module = malloc(1);
    __atomic_add_fetch(&modules, 1, __ATOMIC_RELAXED);
    return SUCCESS;
}

Result cuModuleUnload(void* module) {
    if (ready()) return ready();
    free(module);
    __atomic_sub_fetch(&modules, 1, __ATOMIC_RELAXED);
    return SUCCESS;
}

Result cuModuleGetFunction(void** function, void* module, const char* name) {
    (void)module;
    if (ready()) return ready();
    int is_executed = number("FAKE_CUDA_SQUARES", 0) && !strcmp(name, "probe_squares");
    *function = is_executed ? &squares_function : &the_function;
    return strlen(name) ? SUCCESS : NOT_FOUND;
}

Result cuFuncGetAttribute(int* value, int which, void* function) {
    (void)function;
    *value = which == 1 ? 1024 : 0;
    return ready();
}

Result cuFuncSetAttribute(void* function, int which, int value) {
    if (ready()) return ready();
    if (which != 8) return INVALID_VALUE;
    ((struct Function*)function)->shared_max = value;
    return SUCCESS;
}

Result cuLaunchKernel(void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                      unsigned by, unsigned bz, unsigned shared, void* stream, void** arguments,
                      void** extra) {
    (void)stream;
    if (ready()) return ready();
    if (!gx || !gy || !gz || !bx || !by || !bz || bx * by * bz > 1024 || !arguments || extra)
        return INVALID_VALUE;
    if (shared > 48 << 10 && (int)shared > ((struct Function*)function)->shared_max)
        return INVALID_VALUE;
    launches += 1;
    if (function == &squares_function) {
        uint32_t* squares = *(uint32_t**)arguments[0];
        for (uint32_t at = 0; at < *(uint32_t*)arguments[1]; at++) squares[at] = at * at;
    }
    if (number("FAKE_CUDA_FAIL_LAUNCH", 0) == (int64_t)launches)
        failed = (uint64_t)number("FAKE_CUDA_FAIL_CODE", ILLEGAL_ADDRESS);
    return SUCCESS;
}

Result cuMemcpyHtoDAsync_v2(uint64_t to, const void* from, size_t bytes, void* stream) {
    (void)stream;
    if (ready()) return ready();
    memcpy((void*)to, from, bytes);
    return SUCCESS;
}

Result cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, void* stream) {
    (void)stream;
    if (ready()) return ready();
    memcpy((void*)to, (void*)from, bytes);
    return SUCCESS;
}

Result cuMemcpyDtoHAsync_v2(void* to, uint64_t from, size_t bytes, void* stream) {
    (void)stream;
    if (ready()) return ready();
    memcpy(to, (void*)from, bytes);
    return SUCCESS;
}

Result cuMemsetD8Async(uint64_t to, unsigned char value, size_t bytes, void* stream) {
    (void)stream;
    if (ready()) return ready();
    memset((void*)to, value, bytes);
    return SUCCESS;
}

// NVIDIA's compiler asks the driver for a table; without one, it works alone.
Result cuGetExportTable(const void** table, const void* id) {
    (void)id;
    *table = NULL;
    return NOT_FOUND;
}

Result cuGetErrorName(Result error, const char** name) {
    switch (error) {
    case ILLEGAL_ADDRESS: *name = "CUDA_ERROR_ILLEGAL_ADDRESS"; return SUCCESS;
    case INVALID_VALUE: *name = "CUDA_ERROR_INVALID_VALUE"; return SUCCESS;
    case INVALID_IMAGE: *name = "CUDA_ERROR_INVALID_IMAGE"; return SUCCESS;
    case 46: *name = "CUDA_ERROR_DEVICE_UNAVAILABLE"; return SUCCESS;
    case 214: *name = "CUDA_ERROR_ECC_UNCORRECTABLE"; return SUCCESS;
    case 719: *name = "CUDA_ERROR_LAUNCH_FAILED"; return SUCCESS;
    case 999: *name = "CUDA_ERROR_UNKNOWN"; return SUCCESS;
    default: *name = NULL; return INVALID_VALUE;
    }
}

Result cuGetErrorString(Result error, const char** text) {
    *text = "a made-up failure";
    return error ? SUCCESS : INVALID_VALUE;
}
