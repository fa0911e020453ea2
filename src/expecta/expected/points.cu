// Sums over the points of rows: of outputs of a sum of trees, of its margins, and of their products.
//
// A block has a row and some replicates of its points. It completes them (draws.cu); combines, tree
// by tree, the words that say which leaves the known values allow, which decides many trees for all
// of them (leaf_masks.py); then a thread has a completion, or a share of its trees. All sums are in
// an order that depends on the row alone. Before this text stand
//   MARGINS, OUTPUTS  numbers of these
//   LINK              what makes outputs of margins: see below
//   BLOCKS            that a multiprocessor has at a time

#ifdef ON_HOST
#define LOWEST(word) __builtin_ctzll(word)
#else
#define LOWEST(word) (__ffsll((i64)(word)) - 1)
#endif
#define AT_ONCE 8  // trees of which a thread looks up the words of a value
enum { IDENTITY, EXP, LOGISTIC, SOFTMAX, ONE_VS_REST };

static DEVICE INLINE double logistic(double x) { return 1.0 / (1.0 + exp(-x)); }

static DEVICE INLINE void respond(const double* m, double* y) {
  if (LINK == LOGISTIC || (LINK == ONE_VS_REST && MARGINS == 1)) {
    y[OUTPUTS - 1] = logistic(m[0]);
    if (OUTPUTS == 2) y[0] = logistic(-m[0]);
    return;
  }
  double top = m[0], total = 0;
  UNROLL
  for (int k = 1; k < MARGINS; ++k) top = m[k] > top ? m[k] : top;
  UNROLL
  for (int k = 0; k < MARGINS; ++k) {
    y[k] = LINK == IDENTITY ? m[k] : LINK == EXP ? exp(m[k]) : LINK == SOFTMAX ? exp(m[k] - top) : logistic(m[k]);
    total += y[k];
  }
  if (LINK == SOFTMAX || LINK == ONE_VS_REST) {
    UNROLL
    for (int k = 0; k < MARGINS; ++k) y[k] = total > 0 ? y[k] / total : 1.0 / MARGINS;
  }
}

#define FIRST (OUTPUTS + MARGINS)  // sums of these, and of so many products
#define PRODUCTS (OUTPUTS + MARGINS * (OUTPUTS + MARGINS))
#define STATISTICS (FIRST + PRODUCTS)

extern "C" KERNEL(256, BLOCKS) add_points(
    const Layer* layers, int n_layers, const int2* elements, const int* edge_start, const int* target,
    const double* mantissa, const double* exponent, const int* value_edge, const double* leaf_q,
    const double* leaf_k, const double* leaf_sums, i64 n_nodes, i64 most_elements, i64 most_edges,
    const u64* words /* tree by tree */, const i64* word_at /* of variables; -1: not asked */, int n_words,
    const int4* groups /* value, output, width, split */, int n_groups, const double* value, const double* bias,
    const code* codes, int n_variables, int n_rows, const u64* keys, const double* centre, const double* expected,
    const unsigned* net, const int4* items /* row, first replicate, last, points at once */, int n_items,
    const int2* points /* of rows: from, to */, int room /* completions */, double* scratch,
    i64 stride, double* first_sums /* (replicates, FIRST, rows) */, double* product_sums /* likewise */) {
  SHARED double sums[256], agreed[MARGINS];
  SHARED int scan[256], small, n_known, n_unknown;
  int t = threadIdx.x;
  Circuit C = {layers, n_layers, elements, edge_start, target, mantissa, exponent,
               value_edge, leaf_q, leaf_k, leaf_sums};
  Room R;
  double* at = scratch + (i64)blockIdx.x * stride;
  R.q = at, at += n_nodes;
  R.k = at, at += n_nodes;
  R.product = at, at += most_elements;
  R.product_k = at, at += most_elements;
  R.sums = at, at += most_edges;
  u64 *common = (u64*)at, *open_word = common + n_groups;
  at += 2 * n_groups;
  double *B = at, *Y = B + MARGINS * room, *part_of_margin = Y + OUTPUTS * room;
  at = part_of_margin + MARGINS * (room > 256 ? room : 256);
  R.open = (int*)at;
  R.mark = R.open + n_layers;
  int *known = R.mark + n_nodes, *unknown = known + n_variables, *open_group = unknown + 2 * n_variables;
  R.state = open_group + n_groups;
  for (int item = blockIdx.x; item < n_items; item += gridDim.x) {
    int4 I = items[item];
    int row = I.x, first = I.y, mine = I.z - I.y, at_once = I.w;
    int2 from = points[row];
    const code* x = codes + (i64)row * n_variables;
    if (t == 0) small = SCALED;
    BARRIER;
    if (!small) go_up<false>(C, x, R, &small);
    bool scaled = small;
    if (scaled) go_up<true>(C, x, R, &small);
    if (t == 0) {
      n_known = n_unknown = 0;
      for (int v = 0; v < n_layers; ++v) {
        i64 variable = layers[v].variable;
        if (variable < 0 || word_at[variable] < 0) continue;
        if (x[variable] >= 0) {
          known[n_known++] = (int)(word_at[variable] + x[variable]);
        } else {
          unknown[2 * n_unknown] = v;
          unknown[2 * n_unknown++ + 1] = (int)word_at[variable];
        }
      }
    }
    BARRIER;
    // trees that the known values decide, and the others
    double some[MARGINS];
    UNROLL
    for (int k = 0; k < MARGINS; ++k) some[k] = 0;
    int count = 0;
    for (int g = t; g < n_groups; g += 256) {
      u64 word = ~0ull;
      for (int j = 0; j < n_known; ++j) word &= READ(words + g * n_words + known[j]);
      common[g] = word;
      int4 G = groups[g];
      if ((word & (word - 1)) || (G.w && word)) {
        ++count;
      } else {
        common[g] = 0;
        if (word)
          for (int k = 0; k < G.z; ++k) some[G.y + k] += value[G.x + G.z * LOWEST(word) + k];
      }
    }
    add_up(scan, count);
    int n_open = scan[255], to = scan[t] - count;
    for (int g = t; g < n_groups; g += 256)
      if (common[g]) {
        open_group[to] = g;
        open_word[to++] = common[g];
      }
    for (int k = 0; k < MARGINS; ++k) {
      sums[t] = some[k];
      BARRIER;
      for (int half = 128; half > 0; half >>= 1) {
        if (t < half) sums[t] += sums[t + half];
        BARRIER;
      }
      if (t == 0) agreed[k] = bias[k] + sums[0];
      BARRIER;
    }
    for (int begin = from.x; begin < from.y; begin += at_once) {
      int P = from.y - begin < at_once ? from.y - begin : at_once, n = mine * P;
      Numbers N = {keys[row], net + (i64)begin * n_layers, n_layers, P, first};
      if (scaled)
        go_down<true>(C, R, N, n);
      else
        go_down<false>(C, R, N, n);
      BARRIER;
      int pieces = n < 256 ? 256 / n : 1;
      for (int o = t; o < pieces * n; o += 256) {
        int d = o % n, piece = o / n;
        UNROLL
        for (int k = 0; k < MARGINS; ++k) some[k] = 0;
        for (int i = piece * AT_ONCE; i < n_open; i += pieces * AT_ONCE) {
          u64 word[AT_ONCE];
          int row_of[AT_ONCE];
          UNROLL
          for (int u = 0; u < AT_ONCE; ++u) {
            word[u] = i + u < n_open ? open_word[i + u] : 0;
            row_of[u] = i + u < n_open ? open_group[i + u] * n_words : 0;
          }
          for (int j = 0; j < n_unknown; ++j) {
            int here = unknown[2 * j + 1] + R.state[(i64)unknown[2 * j] * n + d];
            UNROLL
            for (int u = 0; u < AT_ONCE; ++u) word[u] &= READ(words + row_of[u] + here);
          }
          UNROLL
          for (int u = 0; u < AT_ONCE; ++u)
            if (word[u]) {
              int4 G = groups[open_group[i + u]];
              const double* leaf = value + G.x + G.z * LOWEST(word[u]);
              if (MARGINS == 1)
                some[0] += G.z ? leaf[0] : 0.0;
              else
                for (int k = 0; k < G.z; ++k) some[G.y + k] += leaf[k];
            }
        }
        UNROLL
        for (int k = 0; k < MARGINS; ++k) part_of_margin[(piece * MARGINS + k) * n + d] = some[k];
      }
      BARRIER;
      for (int d = t; d < n; d += 256) {
        double y[OUTPUTS];
        UNROLL
        for (int k = 0; k < MARGINS; ++k) {
          some[k] = agreed[k];
          for (int piece = 0; piece < pieces; ++piece) some[k] += part_of_margin[(piece * MARGINS + k) * n + d];
          B[k * n + d] = some[k] - expected[(i64)row * MARGINS + k];
        }
        respond(some, y);
        UNROLL
        for (int k = 0; k < OUTPUTS; ++k) Y[k * n + d] = y[k] - centre[(i64)row * OUTPUTS + k];
      }
      BARRIER;
      for (int s = t; s < mine * STATISTICS; s += 256) {
        int r = s / STATISTICS, k = s % STATISTICS;
        const double *a, *b = 0;
        double* sum = k < FIRST ? first_sums + ((i64)(first + r) * FIRST + k) * n_rows + row
                                : product_sums + ((i64)(first + r) * PRODUCTS + k - FIRST) * n_rows + row;
        if (k < OUTPUTS) {
          a = Y + k * n;
        } else if ((k -= OUTPUTS) < MARGINS) {
          a = B + k * n;
        } else if ((k -= MARGINS) < OUTPUTS) {
          a = b = Y + k * n;
        } else if ((k -= OUTPUTS) < MARGINS * OUTPUTS) {
          a = B + k / OUTPUTS * n, b = Y + k % OUTPUTS * n;
        } else {
          k -= MARGINS * OUTPUTS;
          a = B + k / MARGINS * n, b = B + k % MARGINS * n;
        }
        double total = begin > from.x ? *sum : 0.0;
        for (int p = r * P; p < (r + 1) * P; ++p) total += b ? a[p] * b[p] : a[p];
        *sum = total;
      }
      BARRIER;
    }
  }
}

// Sums over replicates.
extern "C" KERNEL(256, 1) add_replicates(const double* sums, int replicates, i64 n, double* out) {
  i64 i = (i64)blockIdx.x * 256 + threadIdx.x;
  if (i >= n) return;
  double total = 0;
  for (int r = 0; r < replicates; ++r) total += sums[r * n + i];
  out[i] = total;
}
