// A kernel whose results everyone can compute: it tests that a GPU runs kernels at all.

// Writes the squares of 0, 1, 2, ...
extern "C" __global__ void probe_squares(u32* squares, u32 count) {
    u32 at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at < count) squares[at] = at * at;
}
