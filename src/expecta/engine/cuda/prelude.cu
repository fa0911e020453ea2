// What other texts need of a compiler: of a card's, or of the host's.
#ifdef ON_HOST
#include <cmath>
#define DEVICE
#define INLINE inline
#define UNROLL
#define UNROLL_EIGHT
#define KERNEL(threads, blocks) void
#define READ(p) (*(p))
#define SHARED static
#define LOWER(p, v) (*(p) = (v) < *(p) ? (v) : *(p))
#define BARRIER host_barrier()
void host_barrier();
struct Position { int x, y, z; };
static Position blockIdx, threadIdx, blockDim, gridDim;
struct int2 { int x, y; };
struct int4 { int x, y, z, w; };
#else
#define DEVICE __device__
#define INLINE __forceinline__
#define UNROLL _Pragma("unroll")
#define UNROLL_EIGHT _Pragma("unroll 8")
#define KERNEL(threads, blocks) __global__ void __launch_bounds__(threads, blocks)
#define READ(p) __ldg(p)
#define SHARED __shared__
#define LOWER(p, v) atomicMin(p, v)
#define BARRIER __syncthreads()
#ifndef NAN
#define NAN __longlong_as_double(0x7ff8000000000000LL)
#endif
#ifndef INFINITY
#define INFINITY __longlong_as_double(0x7ff0000000000000LL)
#endif
#endif
typedef REAL real;
typedef CODE code;
typedef long long i64;
#define UNIT 1.157920892373162e77  // 2^256
#define TINY (1.0 / UNIT)
#define SMALLEST 4.9406564584124654e-324

// Of a block of 256 threads: the sum of what each of them up to this one has, in `scan`.
static DEVICE INLINE void add_up(int* scan, int mine) {
  int t = threadIdx.x;
  scan[t] = mine;
  BARRIER;
  for (int step = 1; step < 256; step <<= 1) {
    int before = t >= step ? scan[t - step] : 0;
    BARRIER;
    scan[t] += before;
    BARRIER;
  }
}

// 2^(256 k); zero where it is too small to matter, or belongs to a term of zero
static DEVICE INLINE double power(double k) {
  return k == 0 ? 1.0 : fabs(k) > 3 ? 0.0 : ldexp(1.0, 256 * (int)k);
}
