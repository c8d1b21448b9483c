// Runs kernels that are compiled for the CPU. Commands come in on standard input, answers go out on
// standard output; both are little-endian. Memory of the device is memory of this process, so that
// AddressSanitizer sees each access outside of an allocation.
#if !defined(__x86_64__)
#include <ucontext.h>
#endif
#include <unistd.h>
#include <vector>
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

#if defined(__x86_64__)
// Stores the callee-saved registers on the stack and its top in `from`, and continues with the stack
// whose top is `to`. swapcontext would make two system calls, and AddressSanitizer would clear the
// shadow of the whole stack at each: most of the time of the tests.
extern "C" void shim_switch(void **from, void *to);
asm(".text\n"
    ".type shim_switch, @function\n"
    "shim_switch:\n"
    "    push %rbp\n    push %rbx\n    push %r12\n    push %r13\n    push %r14\n    push %r15\n"
    "    mov %rsp, (%rdi)\n"
    "    mov %rsi, %rsp\n"
    "    pop %r15\n    pop %r14\n    pop %r13\n    pop %r12\n    pop %rbx\n    pop %rbp\n"
    "    ret\n"
    ".size shim_switch, . - shim_switch\n");
#endif

namespace shim {
#if defined(__x86_64__)
// The top of a stack that is not in use.
typedef void *Context;

static void switch_to(Context &from, Context &to) { shim_switch(&from, to); }

// `entry` finds the alignment of a called function: 8 bytes past a multiple of 16.
static void prepare(Context &context, char *stack, size_t bytes, void (*entry)()) {
    static const size_t SAVED = 6;
    uintptr_t top = ((uintptr_t)stack + bytes) & ~(uintptr_t)15;
    uint64_t *words = (uint64_t *)top - 2 - SAVED;
    for (size_t i = 0; i < SAVED; i++) words[i] = 0;
    words[SAVED] = (uint64_t)entry;
    words[SAVED + 1] = 0;
    context = words;
}
#else
typedef ucontext_t Context;

static void switch_to(Context &from, Context &to) { swapcontext(&from, &to); }

static void prepare(Context &context, char *stack, size_t bytes, void (*entry)()) {
    getcontext(&context);
    context.uc_stack.ss_sp = stack;
    context.uc_stack.ss_size = bytes;
    context.uc_link = nullptr;
    makecontext(&context, entry, 0);
}
#endif

uint3 thread_index, block_index;
dim3 block_size, grid_size;
void *dynamic_shared;

enum State { Running, AtBlock, AtWarp, Ended };
static const size_t STACK_BYTES = 256 << 10;

struct Thread {
    Context context;
    char *stack = nullptr;
    State state = Ended;
    void *fake = nullptr;
};
struct Warp {
    uint64_t slots[32];
    int predicates;
};

static std::vector<Thread> threads;
static std::vector<Warp> warps;
static Context scheduler;
static void *scheduler_fake;
static const void *scheduler_stack;
static size_t scheduler_stack_bytes;
static unsigned current;
static void (*body)(const uint64_t *);
static const uint64_t *arguments;
static int any_predicate;

unsigned lane() { return current % 32; }
uint64_t *warp_slots() { return warps[current / 32].slots; }

static void leave(State state) {
    Thread &self = threads[current];
    self.state = state;
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_start_switch_fiber(state == Ended ? nullptr : &self.fake, scheduler_stack,
                                   scheduler_stack_bytes);
#endif
    switch_to(self.context, scheduler);
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(self.fake, &scheduler_stack, &scheduler_stack_bytes);
#endif
}
void block_barrier() { leave(AtBlock); }
void warp_barrier() { leave(AtWarp); }

static void entry() {
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(nullptr, &scheduler_stack, &scheduler_stack_bytes);
#endif
    body(arguments);
    leave(Ended);
    abort();
}

static void resume(unsigned number) {
    current = number;
    unsigned width = block_size.x, height = block_size.y;
    thread_index = {number % width, number / width % height, number / (width * height)};
    Thread &thread = threads[number];
    thread.state = Running;
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_start_switch_fiber(&scheduler_fake, thread.stack, STACK_BYTES);
#endif
    switch_to(scheduler, thread.context);
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(scheduler_fake, nullptr, nullptr);
#endif
}

// Lets threads go on that all wait at the same barrier: those of a block, or of a warp.
static bool release(unsigned from, unsigned end, State barrier) {
    bool any = false;
    for (unsigned i = from; i < end; i++) {
        if (threads[i].state == Ended) continue;
        if (threads[i].state != barrier) return false;
        any = true;
    }
    for (unsigned i = from; i < end; i++)
        if (threads[i].state == barrier) threads[i].state = Running;
    return any;
}

static void run_block(unsigned count) {
    if (threads.size() < count) threads.resize(count);
    warps.resize((count + 31) / 32);
    for (unsigned i = 0; i < count; i++) {
        Thread &thread = threads[i];
        if (!thread.stack) thread.stack = (char *)malloc(STACK_BYTES);
        prepare(thread.context, thread.stack, STACK_BYTES, entry);
        thread.state = Running;
    }
    for (;;) {
        bool progress = false, alive = false;
        for (unsigned i = 0; i < count; i++)
            if (threads[i].state == Running) { resume(i); progress = true; }
        for (unsigned warp = 0; warp * 32 < count; warp++) {
            unsigned from = warp * 32, end = from + 32 < count ? from + 32 : count;
            progress |= release(from, end, AtWarp);
        }
        progress |= release(0, count, AtBlock);
        for (unsigned i = 0; i < count; i++) alive |= threads[i].state != Ended;
        if (!alive) return;
        if (!progress) {
            fprintf(stderr, "threads of a block wait at different barriers\n");
            abort();
        }
    }
}
}  // namespace shim

unsigned __ballot_sync(unsigned, int predicate) {
    uint64_t *slots = shim::warp_slots();
    unsigned own = shim::lane(), count = shim::block_size.x * shim::block_size.y * shim::block_size.z;
    unsigned first = shim::current / 32 * 32;
    slots[own] = predicate != 0;
    shim::warp_barrier();
    unsigned result = 0;
    for (unsigned i = 0; i < 32 && first + i < count; i++)
        if (shim::threads[first + i].state != shim::Ended && slots[i]) result |= 1u << i;
    shim::warp_barrier();
    return result;
}
int __syncthreads_or(int predicate) {
    if (predicate) shim::any_predicate = 1;
    shim::block_barrier();
    int result = shim::any_predicate;
    shim::block_barrier();
    shim::any_predicate = 0;
    shim::block_barrier();
    return result;
}

// A kernel as a function of eight-byte arguments.
template <class T> struct Argument {
    static T of(uint64_t bits) { T value; memcpy(&value, &bits, sizeof(T)); return value; }
};
template <size_t... I> struct Indices {};
template <size_t N, size_t... I> struct Count : Count<N - 1, N - 1, I...> {};
template <size_t... I> struct Count<0, I...> { typedef Indices<I...> Type; };
template <class F, F *kernel> struct Call;
template <class... A, void (*kernel)(A...)> struct Call<void(A...), kernel> {
    template <size_t... I> static void with(const uint64_t *arguments, Indices<I...>) {
        kernel(Argument<A>::of(arguments[I])...);
    }
    static void run(const uint64_t *arguments) { with(arguments, typename Count<sizeof...(A)>::Type()); }
    static const size_t count = sizeof...(A);
};
struct Kernel { const char *name; void (*run)(const uint64_t *); size_t count; };
#define KERNEL(name) {#name, Call<decltype(name), name>::run, Call<decltype(name), name>::count},
static const Kernel kernels[] = {
#include "kernels.inc"
};

static void read_all(void *to, size_t bytes) {
    char *at = (char *)to;
    while (bytes) {
        ssize_t got = read(0, at, bytes);
        if (got <= 0) exit(bytes && got == 0 ? 0 : 1);
        at += got, bytes -= got;
    }
}
static void write_all(const void *from, size_t bytes) {
    const char *at = (const char *)from;
    while (bytes) {
        ssize_t sent = write(1, at, bytes);
        if (sent <= 0) exit(1);
        at += sent, bytes -= sent;
    }
}
static uint64_t next() { uint64_t value; read_all(&value, 8); return value; }

int main() {
    for (;;) {
        switch (next()) {
        case 1: {  // allocate: bytes -> address
            uint64_t bytes = next();
            // Of exactly this size, so that no access behind the end goes unseen, and full of
            // bytes that nobody wrote.
            void *memory = nullptr;
            if (posix_memalign(&memory, 256, bytes ? bytes : 1)) return 3;
            memset(memory, 0xa5, bytes);
            uint64_t address = (uint64_t)memory;
            write_all(&address, 8);
            break;
        }
        case 2: free((void *)next()); break;
        case 3: {  // upload: address, bytes, data
            uint64_t address = next(), bytes = next();
            read_all((void *)address, bytes);
            break;
        }
        case 4: {  // download: address, bytes -> data
            uint64_t address = next(), bytes = next();
            write_all((void *)address, bytes);
            break;
        }
        case 5: {  // fill: address, bytes, value
            uint64_t address = next(), bytes = next(), value = next();
            memset((void *)address, (int)value, bytes);
            break;
        }
        case 6: {  // launch: kernel, grid, block, shared bytes, arguments
            const Kernel &kernel = kernels[next()];
            uint64_t shape[6];
            for (uint64_t &side : shape) side = next();
            uint64_t shared = next(), count = next();
            std::vector<uint64_t> arguments(count);
            for (uint64_t &argument : arguments) argument = next();
            if (count != kernel.count) {
                fprintf(stderr, "%s takes %zu arguments, not %zu\n", kernel.name, kernel.count, (size_t)count);
                abort();
            }
            shim::body = kernel.run;
            shim::arguments = arguments.data();
            shim::grid_size = {(unsigned)shape[0], (unsigned)shape[1], (unsigned)shape[2]};
            shim::block_size = {(unsigned)shape[3], (unsigned)shape[4], (unsigned)shape[5]};
            char *memory = (char *)malloc(shared ? shared : 1);
            shim::dynamic_shared = memory;
            for (unsigned z = 0; z < shape[2]; z++)
                for (unsigned y = 0; y < shape[1]; y++)
                    for (unsigned x = 0; x < shape[0]; x++) {
                        memset(memory, 0xa5, shared);
                        shim::block_index = {x, y, z};
                        shim::run_block((unsigned)(shape[3] * shape[4] * shape[5]));
                    }
            free(memory);
            break;
        }
        case 7: {  // wait: -> done
            uint64_t done = 1;
            write_all(&done, 8);
            break;
        }
        case 8: {  // copy: from, to, bytes
            uint64_t from = next(), to = next(), bytes = next();
            memcpy((void *)to, (void *)from, bytes);
            break;
        }
        default: return 2;
        }
    }
}
