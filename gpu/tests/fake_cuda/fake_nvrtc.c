// A library in the place of NVIDIA's run-time compiler, for tests: its "cubin" and "PTX" begin with
// "fake" and name the architecture. FAKE_NVRTC_MAJOR is its version, by default 12 (.9);
// FAKE_NVRTC_FAIL makes every compilation fail with this log.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct Program { char source[64], result[128], log[128]; };

static unsigned long compilations;
unsigned long fake_compilations(void) { return compilations; }

int nvrtcVersion(int* major, int* minor) {
    const char* text = getenv("FAKE_NVRTC_MAJOR");
    *major = text ? atoi(text) : 12;
    *minor = 9;
    return 0;
}

static const int known[] = {75, 80, 90};

int nvrtcGetNumSupportedArchs(int* count) {
    *count = 3;
    return 0;
}

int nvrtcGetSupportedArchs(int* list) {
    memcpy(list, known, sizeof known);
    return 0;
}

int nvrtcCreateProgram(struct Program** program, const char* source, const char* name, int headers,
                       const char* const* texts, const char* const* names) {
    (void)texts, (void)names;
    if (headers || !strlen(source)) return 3;
    *program = calloc(1, sizeof(struct Program));
    snprintf((*program)->source, 64, "%s", name);
    return 0;
}

int nvrtcDestroyProgram(struct Program** program) {
    free(*program);
    *program = NULL;
    return 0;
}

int nvrtcCompileProgram(struct Program* program, int count, const char* const* options) {
    const char* architecture = "";
    for (int at = 0; at < count; at++)
        if (!strncmp(options[at], "--gpu-architecture=", 19)) architecture = options[at] + 19;
    compilations += 1;
    if (getenv("FAKE_NVRTC_FAIL")) {
        snprintf(program->log, 128, "%s: %s\n", program->source, getenv("FAKE_NVRTC_FAIL"));
        return 6;
    }
    snprintf(program->result, 128, "fake %s for %s", program->source, architecture);
    return 0;
}

static int size_of(const char* text, size_t* bytes) {
    *bytes = strlen(text) + 1;
    return 0;
}

static int copy_of(const char* text, char* to) {
    strcpy(to, text);
    return 0;
}

int nvrtcGetProgramLogSize(struct Program* p, size_t* bytes) { return size_of(p->log, bytes); }
int nvrtcGetProgramLog(struct Program* p, char* to) { return copy_of(p->log, to); }
int nvrtcGetPTXSize(struct Program* p, size_t* bytes) { return size_of(p->result, bytes); }
int nvrtcGetPTX(struct Program* p, char* to) { return copy_of(p->result, to); }

// A cubin exists only for a real architecture.
int nvrtcGetCUBINSize(struct Program* p, size_t* bytes) {
    *bytes = strstr(p->result, "sm_") ? strlen(p->result) + 1 : 0;
    return 0;
}

int nvrtcGetCUBIN(struct Program* p, char* to) {
    return strstr(p->result, "sm_") ? copy_of(p->result, to) : 4;
}
