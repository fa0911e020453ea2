// Messages through a tree on a card: likelihoods up, expected counts down, as in messages.py.
//
// A lane is a row, or, at a node that rows share, a pattern; the states of a lane lie side by
// side. Before this text stand
//   REAL      double or float: what messages are made of; sums over lanes are double
//   CODE      what values and patterns of rows are kept as
//   PER_LANE  threads that share a lane on the way up, each with HELD states at most
//   PER_BIN   threads that share the states of a lane where lanes are added up
//   FLOOR     a lane of λ whose greatest number is smaller is scaled
// Every number is written by one thread, in the same order each time: no atomic operations, so
// that the same rows give the same bits.

#define SIDE 64   // of the part of a product that a block computes
#define DEPTH 16  // how much of its depth is in shared memory at a time
#define STEP 16   // between the rows, and the columns, of a thread's 4 x 4 numbers
#define DOWN_BLOCKS (sizeof(REAL) == 4 ? 3 : 2)  // of `pass_down` at a time

struct Node {
  i64 k, above, lanes /* -1: those of the rows at hand */, lam, message, posterior, scale;
  i64 transitions, values, card, first_link, last_link, value_map, down;
};
// Which lane of a child belongs to a lane: its own (map < 0), or one that is looked up.
struct Link { i64 child, map, step; };
struct Bin { i64 node, map, step, to; };

static DEVICE INLINE int looked_up(bool shared, i64 map, i64 step, int lane, const int* patterns,
                                   const code* codes, i64 n_rows, const int* rows) {
  if (map < 0) return lane;
  return shared ? patterns[map + lane * step] : (int)codes[map * n_rows + rows[lane]];
}

// Scale a lane whose greatest number is tiny, and add the logarithm of the factor.
static DEVICE INLINE void scaled(real* x, real* most, double& log_scale) {
  int t = threadIdx.x, own = t % PER_LANE;
  real top = 0;
  UNROLL
  for (int h = 0; h < HELD; ++h) top = x[h] > top ? x[h] : top;
  most[t] = top;
  BARRIER;
  for (int half = PER_LANE / 2; half > 0; half >>= 1) {
    if (own < half && most[t + half] > most[t]) most[t] = most[t + half];
    BARRIER;
  }
  top = most[t - own];
  BARRIER;
  if (top > 0 && top < (real)FLOOR) {
    log_scale += log((double)top);
    UNROLL
    for (int h = 0; h < HELD; ++h) x[h] /= top;
  }
}

// λ of the nodes of a level: the likelihood of the value, times the messages of the children.
// Grid: nodes, lanes.
extern "C" KERNEL(256, 1) up(const Node* nodes, const Link* links, const int* list, int first, const real* theta,
                             real* work, double* scale, const int* patterns, const code* codes, i64 n_rows,
                             const int* rows, int lanes) {
  SHARED real most[256];
  const Node v = nodes[list[first + blockIdx.x]];
  bool shared = v.lanes >= 0;
  int n = shared ? (int)v.lanes : lanes, per_block = 256 / PER_LANE, k = (int)v.k;
  if (blockIdx.y * per_block >= n) return;
  int lane = blockIdx.y * per_block + threadIdx.x / PER_LANE, own = threadIdx.x % PER_LANE;
  bool live = lane < n;
  if (!live) lane = n - 1;
  real x[HELD];
  int value = looked_up(shared, v.value_map, 1, lane, patterns, codes, n_rows, rows);
  const real* likelihood = theta + v.values + value;
  UNROLL
  for (int h = 0; h < HELD; ++h) {
    int s = own + h * PER_LANE;
    x[h] = s >= k ? (real)0 : value < v.card ? likelihood[s * v.card] : (real)1;
  }
  double log_scale = 0;
  scaled(x, most, log_scale);
  for (i64 j = v.first_link; j < v.last_link; ++j) {
    const Link link = links[j];
    const Node* c = nodes + link.child;
    i64 at = looked_up(shared, link.map, link.step, lane, patterns, codes, n_rows, rows);
    const real* message = work + c->message + at * k;
    UNROLL
    for (int h = 0; h < HELD; ++h) {
      int s = own + h * PER_LANE;
      if (s < k) x[h] *= message[s];
    }
    log_scale += scale[c->scale + at];
    scaled(x, most, log_scale);
  }
  if (!live) return;
  UNROLL
  for (int h = 0; h < HELD; ++h) {
    int s = own + h * PER_LANE;
    if (s < k) work[v.lam + (i64)lane * k + s] = x[h];
  }
  if (own == 0) scale[v.scale + lane] = log_scale;
}

// The part of a product that a block computes; `left` and `right` return the factors' numbers.
// A factor that lies in memory along its depth is read so.
template <bool LEFT_ALONG, bool RIGHT_ALONG, class Left, class Right>
static DEVICE INLINE void multiply(real (&sum)[4][4], i64 depth, Left left, Right right) {
  SHARED real a[DEPTH][SIDE + 1], b[DEPTH][SIDE + 1];
  int t = threadIdx.x, row = t / STEP, column = t % STEP;
  UNROLL
  for (int u = 0; u < 4; ++u)
    for (int w = 0; w < 4; ++w) sum[u][w] = 0;
  for (i64 first = 0; first < depth; first += DEPTH) {
    UNROLL
    for (int u = 0; u < 4; ++u) {
      int i = LEFT_ALONG ? t / DEPTH + 16 * u : t % SIDE, d = LEFT_ALONG ? t % DEPTH : t / SIDE + 4 * u;
      a[d][i] = first + d < depth ? left(i, first + d) : (real)0;
      int j = RIGHT_ALONG ? t / DEPTH + 16 * u : t % SIDE, e = RIGHT_ALONG ? t % DEPTH : t / SIDE + 4 * u;
      b[e][j] = first + e < depth ? right(j, first + e) : (real)0;
    }
    BARRIER;
    UNROLL
    for (int d = 0; d < DEPTH; ++d) {
      real x[4], y[4];
      UNROLL
      for (int u = 0; u < 4; ++u) x[u] = a[d][row + STEP * u], y[u] = b[d][column + STEP * u];
      UNROLL
      for (int u = 0; u < 4; ++u)
        for (int w = 0; w < 4; ++w) sum[u][w] += x[u] * y[w];
    }
    BARRIER;
  }
}

// Messages to the parents: m = A λ. Grid: parts of the parent's states, lanes.
extern "C" KERNEL(256, 2) pass_up(const Node* nodes, const int2* tiles /* node, first state above */, int first,
                               const real* theta, real* work, int lanes) {
  int2 tile = tiles[first + blockIdx.x];
  const Node v = nodes[tile.x];
  int n = v.lanes >= 0 ? (int)v.lanes : lanes, lane0 = blockIdx.y * SIDE;
  if (lane0 >= n) return;
  const real *lam = work + v.lam, *table = theta + v.transitions;
  real sum[4][4];
  multiply<true, true>(
      sum, v.k, [&](int i, i64 d) { return lane0 + i < n ? lam[(lane0 + i) * v.k + d] : (real)0; },
      [&](int j, i64 d) { return tile.y + j < v.above ? table[(tile.y + j) * v.k + d] : (real)0; });
  UNROLL
  for (int u = 0; u < 4; ++u)
    for (int w = 0; w < 4; ++w) {
      i64 lane = lane0 + threadIdx.x / STEP + STEP * u, s = tile.y + threadIdx.x % STEP + STEP * w;
      if (lane < n && s < v.above) work[v.message + lane * v.above + s] = sum[u][w];
    }
}

// Log-likelihoods of rows; with `down`, the root's message becomes weight over likelihood.
extern "C" KERNEL(256, 1) likelihoods(const Node* nodes, int root, i64 map, real* work, const double* scale,
                                      const code* codes, i64 n_rows, const int* rows, int lanes,
                                      const double* weight, int down, double* out) {
  int lane = blockIdx.x * 256 + threadIdx.x;
  if (lane >= lanes) return;
  const Node v = nodes[root];
  i64 at = map < 0 ? lane : (i64)codes[map * n_rows + rows[lane]];
  double m = work[v.message + at];
  out[lane] = log(m) + scale[v.scale + at];
  if (down) work[v.message + lane] = m > 0 ? (real)(weight[rows[lane]] / m) : (real)0;
}

// Posteriors of the states, λ ∘ (Aᵀ W), and W of the children with the same lanes: the posterior
// over their messages, which it replaces. Grid: parts of the states, lanes.
extern "C" KERNEL(256, DOWN_BLOCKS) pass_down(const Node* nodes, const Link* links, const int2* tiles /* node, first state */,
                                  int first, const real* theta, real* work, int lanes) {
  int2 tile = tiles[first + blockIdx.x];
  const Node v = nodes[tile.x];
  int n = v.lanes >= 0 ? (int)v.lanes : lanes, lane0 = blockIdx.y * SIDE;
  if (lane0 >= n) return;
  const real *from = work + v.message, *table = theta + v.transitions;
  real sum[4][4];
  multiply<true, false>(
      sum, v.above, [&](int i, i64 d) { return lane0 + i < n ? from[(lane0 + i) * v.above + d] : (real)0; },
      [&](int j, i64 d) { return tile.y + j < v.k ? table[d * v.k + tile.y + j] : (real)0; });
  // loads of all numbers before their use, so that they are on the way together
  int lane = lane0 + threadIdx.x / STEP, s = tile.y + threadIdx.x % STEP, k = (int)v.k;
  i64 first_at = (i64)lane * k + s;
  auto inside = [&](int u, int w) { return lane + STEP * u < n && s + STEP * w < k; };
  auto at = [&](int u, int w) { return first_at + STEP * u * k + STEP * w; };
  real given[4][4];
  auto load = [&](const real* numbers) {
    UNROLL
    for (int u = 0; u < 4; ++u)
      for (int w = 0; w < 4; ++w) given[u][w] = inside(u, w) ? numbers[at(u, w)] : (real)0;
  };
  load(work + v.lam);
  UNROLL
  for (int u = 0; u < 4; ++u)
    for (int w = 0; w < 4; ++w) {
      sum[u][w] *= given[u][w];
      if (inside(u, w)) work[v.posterior + at(u, w)] = sum[u][w];
    }
  for (i64 j = v.first_link; j < v.last_link; ++j) {
    if (links[j].map >= 0) continue;
    real* m = work + nodes[links[j].child].message;
    load(m);
    UNROLL
    for (int u = 0; u < 4; ++u)
      for (int w = 0; w < 4; ++w)
        if (inside(u, w)) m[at(u, w)] = given[u][w] > 0 ? sum[u][w] / given[u][w] : (real)0;
  }
}

// Add W λᵀ, over a part of the lanes each, to counts of transitions. Grid: parts of the tables,
// parts of the lanes.
extern "C" KERNEL(256, 2) count(const Node* nodes, const int4* tiles /* node, first state above, first state */,
                                int first, const real* work, int lanes, double* counts, i64 size) {
  int4 tile = tiles[first + blockIdx.x];
  const Node v = nodes[tile.x];
  i64 n = v.lanes >= 0 ? v.lanes : lanes, part = (n + gridDim.y - 1) / gridDim.y, lane0 = blockIdx.y * part;
  if (lane0 >= n) return;
  const real *from = work + v.message, *lam = work + v.lam;
  real sum[4][4];
  multiply<false, false>(
      sum, lane0 + part < n ? part : n - lane0,
      [&](int i, i64 d) { return tile.y + i < v.above ? from[(lane0 + d) * v.above + tile.y + i] : (real)0; },
      [&](int j, i64 d) { return tile.z + j < v.k ? lam[(lane0 + d) * v.k + tile.z + j] : (real)0; });
  UNROLL
  for (int u = 0; u < 4; ++u)
    for (int w = 0; w < 4; ++w) {
      i64 a = tile.y + threadIdx.x / STEP + STEP * u, s = tile.z + threadIdx.x % STEP + STEP * w;
      if (a < v.above && s < v.k) counts[blockIdx.y * size + v.transitions + a * v.k + s] += sum[u][w];
    }
}

// Add the posteriors of lanes with the same value, or that lead to the same pattern of a child.
// Grid: bins, parts of the lanes (several to a block).
extern "C" KERNEL(256, 1) collect(const Node* nodes, const Bin* bins, int first, const real* work, const int* patterns,
                                  const code* codes, i64 n_rows, const int* rows, int lanes, int parts, double* sums,
                                  i64 size) {
  int per_block = 256 / PER_BIN, which = blockIdx.y * per_block + threadIdx.x / PER_BIN;
  if (which >= parts) return;
  const Bin bin = bins[first + blockIdx.x];
  const Node v = nodes[bin.node];
  bool shared = v.lanes >= 0;
  i64 n = shared ? v.lanes : lanes, part = (n + parts - 1) / parts, end = (which + 1) * part < n ? (which + 1) * part : n;
  double* to = sums + which * size + bin.to;
  for (i64 s = threadIdx.x % PER_BIN; s < v.k; s += PER_BIN)
    for (i64 lane = which * part; lane < end; ++lane) {
      i64 at = looked_up(shared, bin.map, bin.step, (int)lane, patterns, codes, n_rows, rows);
      to[at * v.k + s] += work[v.posterior + lane * v.k + s];
    }
}

// W of nodes that rows share: what came down to each pattern over its message. Grid: nodes, numbers.
extern "C" KERNEL(256, 1) arrive(const Node* nodes, const int* list, int first, real* work, const double* sums,
                                 i64 size, int parts, i64 shift) {
  const Node v = nodes[list[first + blockIdx.x]];
  i64 i = blockIdx.y * 256 + threadIdx.x;
  if (i >= v.lanes * v.above) return;
  double total = 0;
  for (int part = 0; part < parts; ++part) total += sums[part * size + v.down + i - shift];
  real m = work[v.message + i];
  work[v.message + i] = m > 0 ? (real)(total / m) : (real)0;
}

// Sums over parts; counts of transitions (times_theta) are still to be multiplied by θ.
extern "C" KERNEL(256, 1) total(const double* sums, i64 size, int parts, const real* theta, int times_theta, i64 n,
                                double* out) {
  i64 i = (i64)blockIdx.x * 256 + threadIdx.x;
  if (i >= n) return;
  double sum = 0;
  for (int part = 0; part < parts; ++part) sum += sums[part * size + i];
  out[i] = times_theta ? sum * theta[i] : sum;
}

extern "C" KERNEL(256, 1) clear(double* sums, i64 n) {
  i64 i = (i64)blockIdx.x * 256 + threadIdx.x;
  if (i < n) sums[i] = 0;
}
