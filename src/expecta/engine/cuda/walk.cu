// The walk of a pair on a card: levels of a vtree from below, lanes side by side.
//
// A lane is a row, or, in a layer below the sharing frontier, one combination of evidence states.
// What an algebra does (`product`, `point`, and sums of its own) stands before this text; so do
//   REAL      double or float: what states are made of
//   WIDTH, CHANNELS, CONSTANTS  numbers of a state, its channels, g's constants per edge
//   WEIGHTS   0: θ as it is; 1: with powers of two; 2: posterior weights, states divided by q
//   BLOCKS    blocks of `states` that a multiprocessor should hold
//   RUN       pairs of a dense layer that one thread sums at once
//   AHEAD     terms whose states a thread reads at once
// q and its exponents are always double. The host compiler takes the same text (-DON_HOST), one
// thread after the other, which is how it is tested without a card.

// States that are vectors, and sums of vectors: what an algebra does unless it says otherwise.
#ifndef OWN_SUMS
#define IS_MASS(i) true
static DEVICE INLINE void clear(real* acc) {
  UNROLL
  for (int i = 0; i < WIDTH; ++i) acc[i] = 0;
}
static DEVICE INLINE void add(real* acc, real w, const real* t) {
  UNROLL
  for (int i = 0; i < WIDTH; ++i) acc[i] += w * t[i];
}
#endif

#define V ((WIDTH + 1) / 2)
#define FIELDS 14
enum {
  OUT, OUT_STRIDE, LEFT, LEFT_STRIDE, LEFT_MAP, RIGHT, RIGHT_STRIDE, RIGHT_MAP,
  Q_OUT, Q_LEFT, Q_RIGHT, RADIX, HALVES, SPARE
};
struct __attribute__((aligned(2 * sizeof(real)))) Two { real x, y; };

// Where a layer reads and writes, for one lane.
struct Layer {
  int out, halves, left, right, stride, left_stride, right_stride, q, q_left, q_right;
};

static DEVICE INLINE Layer layer_at(const int* L, int lane, const int* maps, i64 map_stride) {
  int radix = L[RADIX], left = lane, right = lane;
  if (radix > 0) {
    left = lane / radix;
    right = lane % radix;
  } else {
    if (L[LEFT_MAP] >= 0) left = READ(maps + L[LEFT_MAP] * map_stride + lane);
    if (L[RIGHT_MAP] >= 0) right = READ(maps + L[RIGHT_MAP] * map_stride + lane);
  }
  Layer at = {L[OUT] + lane, L[HALVES] + lane, L[LEFT] + left, L[RIGHT] + right,
              L[OUT_STRIDE], L[LEFT_STRIDE], L[RIGHT_STRIDE],
              L[Q_OUT] + lane, L[Q_LEFT] + left, L[Q_RIGHT] + right};
  return at;
}

// Blocks go over the items of a level first, so that what they read of a few lanes stays in the
// cache, or (ROWS_FIRST) over lanes.
#if ROWS_FIRST
#define BLOCK_LANES blockIdx.x
#define BLOCK_ITEMS blockIdx.y
#else
#define BLOCK_LANES blockIdx.y
#define BLOCK_ITEMS blockIdx.x
#endif

static DEVICE INLINE void load(real* x, const Two* z, int stride) {
  UNROLL
  for (int v = 0; v < V; ++v) {
    Two t = z[v * stride];
    x[2 * v] = t.x;
    x[2 * v + 1] = t.y;
  }
}

static DEVICE INLINE void store(Two* z, int stride, const real* x) {
  UNROLL
  for (int v = 0; v < V; ++v) {
    Two t = {x[2 * v], 2 * v + 1 < WIDTH ? x[2 * v + 1] : (real)0};
    z[v * stride] = t;
  }
}

struct Edges {
  const int2* nodes;  // of the children that an edge of p joins
  const double *theta, *exponent;
};

// The weight of an edge of p towards node n, for one lane.
static DEVICE INLINE real weight(const Edges& p, int e, int n, const Layer& at, const double* Q, const double* K) {
#if WEIGHTS == 0
  return (real)READ(p.theta + e);
#else
  int2 c = READ(p.nodes + e);
  int l = at.q_left + c.x * at.left_stride, r = at.q_right + c.y * at.right_stride, o = at.q + n * at.stride;
  double w = p.theta[e] * power(K[l] + K[r] + p.exponent[e] - K[o]);
#if WEIGHTS == 2
  w = Q[o] > 0 ? w * Q[l] * Q[r] / Q[o] : 0.0;
#endif
  return (real)w;
#endif
}

// Add the terms from `first` on: products of two states below, or (right < 0) halves.
static DEVICE INLINE void sum(real* acc, const int4* terms, int first, int last, int step, const real* c,
                              const Edges& p, int n, const Layer& at, const Two* Z, const double* Q, const double* K) {
  const Two *zl = Z + at.left, *zr = Z + at.right, *zh = Z + at.halves;
  int ls = at.left_stride, rs = at.right_stride, hs = at.stride;
  if (first < last && READ(terms + first).y < 0) {
    for (int j = first; j < last; j += step) {
      int4 J = READ(terms + j);
      real x[2 * V];
      load(x, zh + J.x * V * hs, hs);
      add(acc, weight(p, J.z, n, at, Q, K), x);
    }
    return;
  }
  int j = first;
  for (; j + (AHEAD - 1) * step < last; j += AHEAD * step) {
    int4 J[AHEAD];
    real x[AHEAD][2 * V], y[AHEAD][2 * V], w[AHEAD];
    UNROLL
    for (int u = 0; u < AHEAD; ++u) J[u] = READ(terms + j + u * step);
    UNROLL
    for (int u = 0; u < AHEAD; ++u) {
      load(x[u], zl + J[u].x * V * ls, ls);
      load(y[u], zr + J[u].y * V * rs, rs);
      w[u] = J[u].z < 0 ? (real)1 : weight(p, J[u].z, n, at, Q, K);
    }
    UNROLL
    for (int u = 0; u < AHEAD; ++u) {
      real t[2 * V];
      product(t, x[u], y[u], c + (i64)J[u].w * CONSTANTS);
      add(acc, w[u], t);
    }
  }
  for (; j < last; j += step) {
    int4 J = READ(terms + j);
    real x[2 * V], y[2 * V], t[2 * V];
    load(x, zl + J.x * V * ls, ls);
    load(y, zr + J.y * V * rs, rs);
    real w = J.z < 0 ? (real)1 : weight(p, J.z, n, at, Q, K);
    product(t, x, y, c + (i64)J.w * CONSTANTS);
    add(acc, w, t);
  }
}

// States of sums, each by a thread, or, where it has many terms, by a block.
// Grid: sums (large ones first), lanes, chunks of channels.
extern "C" KERNEL(256, BLOCKS) states(
    const int* layers, const int4* sums /* layer, first term, last, number; halves: -1 - number */,
    const int* node, int large0, int n_large, int small0, int small1, int chunk,
    const int4* terms, const real* c, i64 c_size, Two* Z, i64 z_size,
    const int2* edge_nodes, const double* theta, const double* exponent, const double* Q, const double* K,
    const int* maps, i64 map_stride, int lanes, int log_across) {
#ifndef ON_HOST
  __shared__ real part[256 * 2 * V];
#endif
  Edges p = {edge_nodes, theta, exponent};
  int across = 1 << log_across, slot = threadIdx.x >> log_across, slots = blockDim.x >> log_across;
  int by = BLOCK_ITEMS, lane = BLOCK_LANES * across + (threadIdx.x & (across - 1));
  bool large = by < n_large;
  int first = large ? large0 + by : small0 + ((by - n_large) * slots + slot) * chunk;
  int last = large ? first + 1 : first + chunk < small1 ? first + chunk : small1;
  Z += blockIdx.z * z_size;
  c += blockIdx.z * c_size;
  int layer = -1, n_lanes = 0;
  bool live = false;
  Layer at;
  for (int k = first; k < last; ++k) {
    int4 S = READ(sums + k);
    if (S.x != layer) {
      layer = S.x;
      const int* L = layers + layer * FIELDS;
      n_lanes = L[RADIX] > 0 ? (int)L[OUT_STRIDE] : lanes;
      live = lane < n_lanes;
      at = layer_at(L, live ? lane : n_lanes - 1, maps, map_stride);
    }
    int n = WEIGHTS ? READ(node + k) : 0;
    real acc[2 * V];
    clear(acc);
#ifdef ON_HOST
    if (large && slot) continue;
    sum(acc, terms, S.y, S.z, 1, c, p, n, at, Z, Q, K);
#else
    sum(acc, terms, large ? S.y + slot : S.y, S.z, large ? slots : 1, c, p, n, at, Z, Q, K);
    if (large) {
      for (int half = slots >> 1; half > 0; half >>= 1) {
        if (slot >= half && slot < 2 * half)
          for (int i = 0; i < WIDTH; ++i) part[i * 256 + threadIdx.x] = acc[i];
        __syncthreads();
        if (slot < half) {
          real other[2 * V];
          UNROLL
          for (int i = 0; i < WIDTH; ++i) other[i] = part[i * 256 + threadIdx.x + half * across];
          add(acc, (real)1, other);
        }
        __syncthreads();
      }
      if (slot) continue;
    }
#endif
    if (!live) continue;
    int to = S.w >= 0 ? at.out + S.w * V * at.stride : at.halves + (-1 - S.w) * V * at.stride;
    store(Z + to, at.stride, acc);
  }
}

// Pairs of a dense layer that sum the same halves: RUN of them per thread, each half read once.
extern "C" KERNEL(256, 1) runs(
    const int* layers, const int4* records /* layer, first pair, pairs, first half | terms, first edge, edges per pair, pair */,
    int first, int last, const int* halves, const int* node, Two* Z, i64 z_size,
    const int2* edge_nodes, const double* theta, const double* exponent, const double* Q, const double* K,
    const int* maps, i64 map_stride, int lanes, int log_across) {
  Edges p = {edge_nodes, theta, exponent};
  int across = 1 << log_across, lane = BLOCK_LANES * across + (threadIdx.x & (across - 1));
  int k = first + BLOCK_ITEMS * (blockDim.x >> log_across) + (threadIdx.x >> log_across);
  if (k >= last) return;
  int4 A = READ(records + 2 * k), B = READ(records + 2 * k + 1);
  const int* L = layers + A.x * FIELDS;
  if (lane >= (L[RADIX] > 0 ? (int)L[OUT_STRIDE] : lanes)) return;
  Layer at = layer_at(L, lane, maps, map_stride);
  int stride = at.stride;
  Z += blockIdx.z * z_size;
  const Two* z = Z + at.halves;
  real acc[RUN][2 * V];
  UNROLL
  for (int u = 0; u < RUN; ++u) clear(acc[u]);
  for (int a = 0; a < B.x; ++a) {
    real x[2 * V];
    load(x, z + READ(halves + A.w + a) * V * stride, stride);
    UNROLL
    for (int u = 0; u < RUN; ++u)
      if (u < A.z) add(acc[u], weight(p, B.y + u * B.z + a, READ(node + B.w + u), at, Q, K), x);
  }
  UNROLL
  for (int u = 0; u < RUN; ++u)
    if (u < A.z) store(Z + at.out + (A.y + u) * V * stride, stride, acc[u]);
}

// A positive number brought to at least 2^-256.
static DEVICE INLINE void lift(double& number, double& exponent) {
  while (number > 0 && number < TINY) {
    number *= UNIT;
    exponent -= 1;
  }
}

// q of the nodes of p, and its exponents. Without exponents a lane that needs them is reported.
extern "C" KERNEL(256, 1) probabilities(
    const int* layers, const int4* nodes /* layer, first edge, last, number */, int first, int last, int chunk,
    const int2* edge_nodes, const double* theta, const double* exponent, double* Q, double* K,
    const int* maps, i64 map_stride, int lanes, int log_across, int* too_small) {
  int across = 1 << log_across, slot = threadIdx.x >> log_across, slots = blockDim.x >> log_across;
  int lane = BLOCK_LANES * across + (threadIdx.x & (across - 1));
  first += (BLOCK_ITEMS * slots + slot) * chunk;
  if (last > first + chunk) last = first + chunk;
  int layer = -1;
  bool live = false;
  Layer at;
  for (int k = first; k < last; ++k) {
    int4 N = READ(nodes + k);
    if (N.x != layer) {
      layer = N.x;
      const int* L = layers + layer * FIELDS;
      live = lane < (L[RADIX] > 0 ? (int)L[OUT_STRIDE] : lanes);
      if (live) at = layer_at(L, lane, maps, map_stride);
    }
    if (!live) continue;
    int ls = at.left_stride, rs = at.right_stride, to = at.q + N.w * at.stride;
    const double *ql = Q + at.q_left, *qr = Q + at.q_right;
    double total = 0;
#if WEIGHTS == 0
    UNROLL_EIGHT
    for (int e = N.y; e < N.z; ++e) {
      int2 E = READ(edge_nodes + e);
      total += READ(theta + e) * (ql[E.x * ls] * qr[E.y * rs]);
    }
    if (total > 0 && total < TINY) *too_small = 1;
#else
    const double *kl = K + at.q_left, *kr = K + at.q_right;
    double top = -INFINITY;
    for (int pass = 0; pass < 2; ++pass)
      for (int e = N.y; e < N.z; ++e) {
        int2 E = READ(edge_nodes + e);
        double term = ql[E.x * ls] * qr[E.y * rs], k = kl[E.x * ls] + kr[E.y * rs] + exponent[e];
        lift(term, k);
        term *= theta[e];
        lift(term, k);
        if (term > 0) {
          if (pass) total += term * power(k - top);
          else top = k > top ? k : top;
        }
      }
    K[to] = total > 0 ? top : 0;
#endif
    Q[to] = total;
  }
}

// A value of a leaf as a number and an exponent.
static DEVICE INLINE void value_of(double& term, double& k, int e, int x, const double* theta, const double* exponent,
                                   const double* state, i64 states_size) {
  term = theta[e] * state[x];
  k = exponent[e] + state[x + states_size];
}

// q of the nodes of leaves for every state of evidence: one thread per node and state.
extern "C" KERNEL(256, 1) leaf_probabilities(
    const int4* cells /* first edge, last, where the weights of the state begin, - */, const i64* to, int n_cells,
    const int* target, const double* theta, const double* exponent, const double* state, i64 states_size,
    double* Q, double* K, int* too_small) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n_cells) return;
  int4 C = READ(cells + i);
  double top = -INFINITY, total = 0, lowest = 0, term, k;
  for (int e = C.x; e < C.y; ++e) {
    value_of(term, k, e, C.z + target[e], theta, exponent, state, states_size);
    if (term > 0) {
      lowest = k < lowest ? k : lowest;
      if (term < TINY) k -= 1;
      top = k > top ? k : top;
    }
  }
  for (int e = C.x; e < C.y; ++e) {
    value_of(term, k, e, C.z + target[e], theta, exponent, state, states_size);
    if (term > 0) total += fmax(term * power(k - top), SMALLEST);
  }
  Q[to[i]] = total;
#if WEIGHTS == 0
  if (total > 0 && (lowest < 0 || top < 0)) *too_small = 1;
#else
  K[to[i]] = total > 0 ? top : 0;
#endif
}

// States of the pairs of leaves: one thread per pair and state.
extern "C" KERNEL(256, 1) leaf_states(
    const int4* cells /* first meeting, last, where the weights begin, states of the variable */,
    const i64* to /* where the state goes, and where q is */, int n_cells,
    const int2* meetings /* edge of p, edge of g */, const int* target, const double* theta, const double* exponent,
    const double* state, i64 states_size, const real* c, i64 c_size, Two* Z, i64 z_size, const double* Q, const double* K) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n_cells) return;
  int4 C = READ(cells + i);
  i64 q = to[2 * i + 1];
  c += blockIdx.z * c_size;
#if WEIGHTS == 0
  double top = 0;
#else
  double top = K[q];
#endif
  real acc[2 * V];
  clear(acc);
  for (int j = C.x; j < C.y; ++j) {
    int2 M = READ(meetings + j);
    double term, k;
    value_of(term, k, M.x, C.z + target[M.x], theta, exponent, state, states_size);
    if (term > 0) {
      term = fmax(term * power(k - top), SMALLEST);
#if WEIGHTS == 2
      term /= Q[q];
#endif
      real t[2 * V];
      point(t, c + (i64)M.y * CONSTANTS);
      add(acc, (real)term, t);
    }
  }
  store(Z + blockIdx.z * z_size + to[2 * i], C.w, acc);
}

// The number of each row's combination of evidence states, for every subtree at the frontier.
extern "C" KERNEL(256, 1) number(const code* codes, i64 code_stride, int lanes, const int* start,
                              const int2* variables /* variable, its states */, int n_subtrees, int* maps, i64 map_stride) {
  int lane = blockIdx.x * blockDim.x + threadIdx.x;
  if (lane >= lanes) return;
  for (int s = blockIdx.y; s < n_subtrees; s += gridDim.y) {
    int id = 0;
    for (int k = start[s]; k < start[s + 1]; ++k) id = id * variables[k].y + (int)codes[variables[k].x * code_stride + lane];
    maps[s * map_stride + lane] = id;
  }
}

// The root: q, its exponent, and the states of all chunks of channels, lane by lane.
extern "C" KERNEL(256, 1) finish(const int* layers, int root_layer, int root_map, const Two* Z, i64 z_size, const double* Q, const double* K,
                              const int* maps, i64 map_stride, const int* too_small, double* out, i64 out_stride, int lanes, int has_pair) {
  int lane = blockIdx.x * blockDim.x + threadIdx.x;
  if (lane >= lanes) return;
  const int* root = layers + root_layer * FIELDS;
  int from = root_map >= 0 ? READ(maps + root_map * map_stride + lane) : lane;
  int q = root[Q_OUT] + from;
  if (blockIdx.z == 0) {
    out[lane] = Q[q];
#if WEIGHTS == 0
    out[out_stride + lane] = *too_small ? NAN : 0.0;
#else
    out[out_stride + lane] = K[q];
#endif
  }
  if (!has_pair) return;
  real x[2 * V];
  load(x, Z + blockIdx.z * z_size + root[OUT] + from, root[OUT_STRIDE]);
  double* o = out + (2 + blockIdx.z * WIDTH) * out_stride + lane;
  for (int i = 0; i < WIDTH; ++i) o[i * out_stride] = (double)x[i] * (WEIGHTS == 2 && IS_MASS(i) ? Q[q] : 1.0);
}
