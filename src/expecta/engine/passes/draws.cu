// Completions of a row: the pass up, and the way down with a choice at every node, as choices.py.
//
// A block of threads has a row of values. It goes up together, a thread per node, and down with many
// completions at once: of each layer the nodes that any of them came to get the running sums of their
// edges' shares, and each completion finds its edge there. What is known below a node needs no choice.
// Before this text stand
//   CODE    what values of rows are kept as
//   SCALED  whether parameters have exponents; the pass up adds them where it needs some

#ifdef ON_HOST
#define RAISE(flag) (*(flag) = 1)
#else
#define RAISE(flag) atomicExch(flag, 1)
#endif
typedef unsigned long long u64;

struct Layer {  // of the vtree, children first
  i64 variable /* -1 above leaves */, left, right, nodes, width, elements, n_elements;
  i64 values /* of a leaf: where the edges begin that its values have, value by value */;
};

struct Circuit {
  const Layer* layers;
  int n_layers;
  const int2* elements;
  const int *edge_start, *target;
  const double *mantissa, *exponent;
  const int* value_edge;  // -1: none
  const double *leaf_q, *leaf_k, *leaf_sums;  // where nothing is known
};

struct Room {  // of a block
  double *q, *k;                 // of every node, and its exponent
  double *product, *product_k;   // of the elements of a layer
  double* sums;                  // of the shares of its edges
  int *open, *mark;              // whether a value below is unknown; which nodes are visited
  int* state;                    // of each completion: its node of a layer, and then its value
};

static DEVICE INLINE double lifted(double term, double& k) {
  for (; term > 0 && term < TINY; k -= 1) term *= UNIT;
  return term;
}

template <bool WITH_K>
static DEVICE INLINE void multiply_children(const Circuit& C, const Layer& L, const Room& R) {
  i64 left = C.layers[L.left].nodes, right = C.layers[L.right].nodes;
  for (i64 e = threadIdx.x; e < L.n_elements; e += 256) {
    int2 E = C.elements[L.elements + e];
    R.product[e] = R.q[left + E.x] * R.q[right + E.y];
    if (WITH_K) R.product_k[e] = R.k[left + E.x] + R.k[right + E.y];
  }
}

// q of every node. Without exponents: `small` is raised where some are needed.
template <bool WITH_K>
static DEVICE INLINE void go_up(const Circuit& C, const code* x, const Room& R, int* small) {
  int t = threadIdx.x;
  for (int v = 0; v < C.n_layers; ++v) {
    const Layer L = C.layers[v];
    if (L.variable >= 0) {
      int value = (int)x[L.variable];
      if (t == 0) R.open[v] = value < 0;
      for (i64 n = t; n < L.width; n += 256) {
        i64 to = L.nodes + n;
        int edge = value < 0 ? 0 : READ(C.value_edge + L.values + value * L.width + n);
        R.q[to] = value < 0 ? C.leaf_q[to] : edge < 0 ? 0.0 : C.mantissa[edge];
        if (WITH_K) R.k[to] = value < 0 ? C.leaf_k[to] : edge < 0 ? 0.0 : C.exponent[edge];
      }
      BARRIER;
      continue;
    }
    if (t == 0) R.open[v] = R.open[L.left] | R.open[L.right];
    multiply_children<WITH_K>(C, L, R);
    BARRIER;
    for (i64 n = t; n < L.width; n += 256) {
      i64 to = L.nodes + n;
      int first = C.edge_start[to], last = C.edge_start[to + 1];
      double total = 0, top = -INFINITY;
      if (WITH_K) {
        for (int a = first; a < last; ++a) {
          int e = READ(C.target + a);
          double k = R.product_k[e] + READ(C.exponent + a);
          if (lifted(lifted(R.product[e], k) * READ(C.mantissa + a), k) > 0 && k > top) top = k;
        }
        for (int a = first; a < last; ++a) {
          int e = READ(C.target + a);
          double k = R.product_k[e] + READ(C.exponent + a);
          double term = lifted(lifted(R.product[e], k) * READ(C.mantissa + a), k);
          if (term > 0) total += term * power(k - top);
        }
        R.k[to] = total > 0 ? top : 0.0;
      } else {
        for (int a = first; a < last; ++a) total += READ(C.mantissa + a) * R.product[READ(C.target + a)];
        if (total > 0 && total < TINY) RAISE(small);
      }
      R.q[to] = total;
    }
    BARRIER;
  }
}

static DEVICE INLINE u64 mixed(u64 x) {  // the generator SplitMix64
  x += 0x9E3779B97F4A7C15ull;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

// The numbers in [0, 1) of completions: replicates of some points of a net, shifted by a row's key.
struct Numbers {
  u64 key;
  const unsigned* net;  // from the first of these points on
  int dimensions, points, replicate /* the first */;
};

static DEVICE INLINE double number(const Numbers& N, int draw, int v) {
  u64 which = (u64)(N.replicate + draw / N.points) * N.dimensions + v;
  unsigned word = (unsigned)(mixed(N.key ^ mixed(which)) >> 34) ^ READ(N.net + (i64)(draw % N.points) * N.dimensions + v);
  return (word + 0.5) * 9.313225746154785e-10;  // 2^-30
}

// The first of the edges a .. b whose running sum is above a share of the last.
static DEVICE INLINE int choose(const double* sums, int a, int b, double share) {
  double u = share * sums[b - 1];
  while (b - a > 1) {
    int middle = (a + b - 1) / 2;
    if (sums[middle] > u)
      b = middle + 1;
    else
      a = middle + 1;
  }
  return a;
}

// Values of the unknown variables of `n` completions, in `state` at their leaves.
template <bool WITH_K>
static DEVICE INLINE void go_down(const Circuit& C, const Room& R, const Numbers& N, int n) {
  int t = threadIdx.x;
  for (int d = t; d < n; d += 256) R.state[(i64)(C.n_layers - 1) * n + d] = 0;
  for (int v = C.n_layers - 1; v >= 0; --v) {
    if (!R.open[v]) continue;
    const Layer L = C.layers[v];
    int* mine = R.state + (i64)v * n;
    if (L.variable >= 0) {
      for (int d = t; d < n; d += 256) {
        const int* at = C.edge_start + L.nodes + mine[d];
        mine[d] = C.target[choose(C.leaf_sums, at[0], at[1], number(N, d, v))];
      }
      continue;
    }
    for (i64 k = t; k < L.width; k += 256) R.mark[k] = 0;
    multiply_children<WITH_K>(C, L, R);
    BARRIER;
    for (int d = t; d < n; d += 256) R.mark[mine[d]] = 1;
    BARRIER;
    int begin = C.edge_start[L.nodes];
    for (i64 k = t; k < L.width; k += 256) {
      if (!R.mark[k]) continue;
      i64 node = L.nodes + k;
      int last = C.edge_start[node + 1];
      double total = 0;
      for (int a = C.edge_start[node]; a < last; ++a) {
        int e = READ(C.target + a);
        double share = READ(C.mantissa + a) * R.product[e];
        if (WITH_K) share *= power(READ(C.exponent + a) + R.product_k[e] - R.k[node]);
        total += share;
        R.sums[a - begin] = total;
      }
    }
    BARRIER;
    int *left = R.state + L.left * n, *right = R.state + L.right * n;
    for (int d = t; d < n; d += 256) {
      const int* at = C.edge_start + L.nodes + mine[d];
      int a = begin + choose(R.sums, at[0] - begin, at[1] - begin, number(N, d, v));
      int2 E = C.elements[L.elements + C.target[a]];
      left[d] = E.x;
      right[d] = E.y;
    }
    BARRIER;
  }
}

// q of the nodes of leaves where nothing is known, their exponents, and running sums of shares.
extern "C" KERNEL(256, 1) sum_leaves(const int* nodes, int n, const int* edge_start, const double* mantissa,
                                     const double* exponent, double* q, double* k, double* sums) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i >= n) return;
  int node = nodes[i], first = edge_start[node], last = edge_start[node + 1];
  double total = 0, top = -INFINITY;
  for (int a = first; a < last; ++a)
    if (mantissa[a] > 0 && exponent[a] - (mantissa[a] < TINY) > top) top = exponent[a] - (mantissa[a] < TINY);
  for (int a = first; a < last; ++a) {
    if (mantissa[a] > 0) total += mantissa[a] * power(exponent[a] - top);
    sums[a] = total;
  }
  q[node] = total;
  k[node] = total > 0 ? top : 0;
}
