// The expectation of a sum of boxes: a block of threads for each row, as box_recursion.py does it.
//
// Of the boxes that known values leave alive many ask the same of what is unknown below a vtree
// node. There a box has the number of a vector of probabilities, and a hash table tells which pairs
// of the children's numbers are equal. Below nodes where nothing is known the vectors are those of
// `prior`; where all is known there is one. Whatever the order of threads, every number is computed
// in the same way from the same numbers, and sums over boxes are in their order. Before this text stand
//   CODE    what values of rows are kept as
//   NEAR    slots of the hash table that is in shared memory; rows with more boxes have another
//   HALVES  products of halves that are in shared memory
//   SMALL   a layer whose probabilities are below is scaled

#ifdef ON_HOST
typedef unsigned long long u64;
static u64 swapped(u64* p, u64 old, u64 now) {
  u64 was = *p;
  if (was == old) *p = now;
  return was;
}
static int added(int* p, int by) {
  int was = *p;
  *p += by;
  return was;
}
#define BITS(word) __builtin_popcount(word)
#define LOWEST(word) __builtin_ctz(word)
#define NOINLINE
#else
typedef unsigned long long u64;
#define swapped atomicCAS
#define added atomicAdd
#define BITS(word) __popc(word)
#define LOWEST(word) (__ffs((int)(word)) - 1)
#define NOINLINE __noinline__
#endif

#define GROUP 8  // vectors of which a thread computes a number at once
enum { UNKNOWN, KNOWN, MIXED };
struct __attribute__((aligned(16))) Twice { double x, y; };

struct Layer {  // of the vtree, children first
  i64 variable /* -1 above leaves */, left, right, width, height;
  i64 elements /* where they begin */, weights /* of a dense layer, else -1 */, nodes, prior, leaf;
};

// A layer, and the children's vectors that its pairs join.
struct Join {
  const double *left, *right;
  int left_width, right_width, height, width;
  const int2 *pairs /* none: of the first of each child */, *elements;
  const double* weight;  // of a dense layer
  const int *edges /* of its nodes */, *edge_element;
  const double* edge_weight;
};

static DEVICE INLINE double joined(const Join& J, int k, int q) {
  int2 P = {0, 0}, E = READ(J.elements + q);
  if (J.pairs) P = J.pairs[k];
  return J.left[(i64)P.x * J.left_width + E.x] * J.right[(i64)P.y * J.right_width + E.y];
}

// `n` vectors: products of halves, summed over the elements of p. GROUP vectors per thread, so that
// a weight that was read serves all of them; products are in shared memory.
template <bool DENSE>
static DEVICE INLINE void join(const Join& J, int n, double* halves, double* V) {
  int t = threadIdx.x, h = J.height, w = J.width, padded = h + (h & 1), at_once = HALVES / padded / GROUP * GROUP;
  for (int first = 0; first < n; first += at_once) {
    int m = n - first < at_once ? n - first : at_once;
    for (int o = t; o < m * h; o += 256) halves[o / h * padded + o % h] = joined(J, first + o / h, o % h);
    BARRIER;
    for (int o = t; o < (m + GROUP - 1) / GROUP * w; o += 256) {
      int node = o % w, k = o / w * GROUP;
      const double* mine = halves + k * padded;
      double sum[GROUP];
      UNROLL
      for (int u = 0; u < GROUP; ++u) sum[u] = 0;
      if (DENSE) {
        const double* W = J.weight + node;
        for (int q = 0; q + 1 < h; q += 2, W += 2 * w) {
          double x = READ(W), y = READ(W + w);
          UNROLL
          for (int u = 0; u < GROUP; ++u) {
            Twice both = *(const Twice*)(mine + u * padded + q);
            sum[u] += x * both.x;
            sum[u] += y * both.y;
          }
        }
        if (h & 1) {
          double x = READ(W);
          UNROLL
          for (int u = 0; u < GROUP; ++u) sum[u] += x * mine[u * padded + h - 1];
        }
      } else {
        for (int j = J.edges[node]; j < J.edges[node + 1]; ++j) {
          double x = READ(J.edge_weight + j);
          const double* at = mine + READ(J.edge_element + j);
          UNROLL
          for (int u = 0; u < GROUP; ++u) sum[u] += x * at[u * padded];
        }
      }
      UNROLL
      for (int u = 0; u < GROUP; ++u)
        if (k + u < m) V[(i64)(first + k + u) * w + node] = sum[u];
    }
    BARRIER;
  }
}

// The same for a layer of more elements than fit there.
static DEVICE NOINLINE void join_wide(const Join& J, int n, double* V) {
  for (i64 o = threadIdx.x; o < (i64)n * J.width; o += 256) {
    int k = (int)(o / J.width), node = (int)(o % J.width);
    int from = J.weight ? 0 : J.edges[node], to = J.weight ? J.height : J.edges[node + 1];
    double sum = 0;
    for (int j = from; j < to; ++j) {
      int q = J.weight ? j : READ(J.edge_element + j);
      sum += (J.weight ? J.weight[(i64)j * J.width + node] : READ(J.edge_weight + j)) * joined(J, k, q);
    }
    V[o] = sum;
  }
  BARRIER;
}

// Which of a word's boxes no known value lies outside of.
static DEVICE INLINE unsigned living(int word, const code* x, int n_variables, const unsigned* masks,
                                     const i64* mask_at, int words, int n_boxes) {
  int left = n_boxes - 32 * word;
  unsigned alive = left >= 32 ? 0xFFFFFFFFu : (1u << left) - 1;
  for (int v = 0; v < n_variables; ++v) {
    int value = (int)x[v];
    if (value >= 0) alive &= READ(masks + mask_at[v] + (i64)value * words + word);
  }
  return alive;
}

// Write the outputs of each row and, after them, 1, or 0 where the room was not enough.
extern "C" KERNEL(256, 4) expect_boxes(
    const Layer* layers, int n_layers, const int2* elements, const double* weight, const int* node_edges,
    const int* edge_element, const double* edge_weight, const double* leaf, const double* prior,
    const int* of_box /* its part of each layer */, int n_boxes, const unsigned* masks, const i64* mask_at,
    int words, const double* value, int outputs, const code* codes, int n_variables, int n_rows,
    double* scratch, i64 stride, i64 slots, i64 room_size, double* out) {
  SHARED u64 near_table[NEAR];
  SHARED int near_ids[NEAR];
  SHARED Twice halves_here[HALVES / 2];
  double* halves = (double*)halves_here;
  SHARED double sums[256];
  SHARED int scan[256];
  SHARED int found;
  int t = threadIdx.x;
  scratch += (i64)blockIdx.x * stride;
  const double** vectors = (const double**)scratch;
  int** numbers = (int**)(scratch + n_layers);
  i64* kind = (i64*)(scratch + 2 * n_layers);
  u64* far_table = (u64*)(scratch + 3 * n_layers);
  int* far_ids = (int*)(scratch + 3 * n_layers + slots);
  int* alive = far_ids + slots;
  double* room = scratch + 3 * n_layers + slots + (slots + n_boxes + 1) / 2;
  for (int s = t; s < NEAR; s += 256) near_table[s] = 0;
  for (i64 s = t; s < slots; s += 256) far_table[s] = 0;
  u64 stamp = 0;
  for (int r = blockIdx.x; r < n_rows; r += gridDim.x) {
    const code* x = codes + (i64)r * n_variables;
    int mine = 0;
    for (int word = t; word < words; word += 256)
      mine += BITS(living(word, x, n_variables, masks, mask_at, words, n_boxes));
    add_up(scan, mine);
    int n_alive = scan[255], to = scan[t] - mine;
    for (int word = t; word < words; word += 256)
      for (unsigned some = living(word, x, n_variables, masks, mask_at, words, n_boxes); some; some &= some - 1)
        alive[to++] = word * 32 + LOWEST(some);
    for (int v = t; v < n_layers; v += 256) {
      const Layer& L = layers[v];
      if (L.variable < 0) continue;
      int value_here = (int)x[L.variable];
      kind[v] = value_here < 0 ? UNKNOWN : KNOWN;
      vectors[v] = value_here < 0 ? prior + L.prior : leaf + L.leaf + value_here * L.width;
    }
    BARRIER;
    int size = 64;
    while (size < 2 * n_alive) size *= 2;
    u64* table = size <= NEAR ? near_table : far_table;
    int* ids = size <= NEAR ? near_ids : far_ids;
    i64 top = 0;
    bool fits = true;
    for (int v = 0; v < n_layers; ++v) {
      const Layer& L = layers[v];
      if (L.variable >= 0) continue;
      i64 left_kind = kind[L.left], right_kind = kind[L.right];
      if (left_kind == UNKNOWN && right_kind == UNKNOWN) {
        if (t == 0) {
          kind[v] = UNKNOWN;
          vectors[v] = prior + L.prior;
        }
        BARRIER;
        continue;
      }
      int n = 1, *number = 0;
      int2* pairs = 0;
      if (left_kind != KNOWN || right_kind != KNOWN) {
        i64 need = n_alive + (n_alive + 1) / 2;
        if (top + need > room_size) {
          fits = false;
          break;
        }
        pairs = (int2*)(room + top);
        number = (int*)(room + top + n_alive);
        top += need;
        const int *left_part = of_box + L.left * n_boxes, *right_part = of_box + L.right * n_boxes;
        const int *left_number = numbers[L.left], *right_number = numbers[L.right];
        ++stamp;
        if (t == 0) {  // what asks nothing comes first
          found = 1;
          pairs[0].x = pairs[0].y = 0;
        }
        BARRIER;
        for (int a = t; a < n_alive; a += 256) {
          int i = left_kind == UNKNOWN ? READ(left_part + alive[a]) : left_kind == MIXED ? left_number[a] : 0;
          int j = right_kind == UNKNOWN ? READ(right_part + alive[a]) : right_kind == MIXED ? right_number[a] : 0;
          int slot = -1;
          if (i | j) {
            u64 key = (u64)i << 20 | (u64)j, tag = stamp << 40 | key;
            slot = (int)(key * 0x9E3779B97F4A7C15ull >> 40) & (size - 1);
            for (;;) {
              u64 there = *(volatile u64*)(table + slot);
              if (there == tag) break;
              if (there >> 40 == stamp) {
                slot = (slot + 1) & (size - 1);
              } else if (swapped(table + slot, there, tag) == there) {
                int k = added(&found, 1);
                ids[slot] = k;
                pairs[k].x = i;
                pairs[k].y = j;
                break;
              }
            }
          }
          number[a] = slot;
        }
        BARRIER;
        n = found;
        for (int a = t; a < n_alive; a += 256) number[a] = number[a] < 0 ? 0 : ids[number[a]];
      }
      if (top + n * L.width > room_size) {
        fits = false;
        break;
      }
      double* V = room + top;
      top += n * L.width;
      Join J = {vectors[L.left], vectors[L.right], (int)layers[L.left].width, (int)layers[L.right].width,
                (int)L.height, (int)L.width, pairs, elements + L.elements,
                L.weights >= 0 ? weight + L.weights : 0, node_edges + L.nodes, edge_element, edge_weight};
      if (J.height > HALVES / GROUP)
        join_wide(J, n, V);
      else if (J.weight)
        join<true>(J, n, halves, V);
      else
        join<false>(J, n, halves, V);
      double most = 0;
      for (int k = 0; k < L.width; ++k) most = V[k] > most ? V[k] : most;
      if (most > 0 && most < SMALL) {
        BARRIER;
        for (i64 k = t; k < n * L.width; k += 256) V[k] /= most;
      }
      if (t == 0) {
        kind[v] = pairs ? MIXED : KNOWN;
        vectors[v] = V;
        numbers[v] = number;
      }
      BARRIER;
    }
    double* row = out + (i64)r * (outputs + 1);
    if (t == 0) row[outputs] = fits ? 1.0 : 0.0;
    int root = n_layers - 1;
    for (int k = 0; fits && k < outputs; ++k) {
      const double* share = vectors[root];  // its layer is a single node
      const int* part = of_box + (i64)root * n_boxes;
      double sum = 0;
      for (int a = t; a < n_alive; a += 256) {
        int number = kind[root] == UNKNOWN ? READ(part + alive[a]) : kind[root] == MIXED ? numbers[root][a] : 0;
        sum += share[number] * READ(value + (i64)alive[a] * outputs + k);
      }
      sums[t] = sum;
      BARRIER;
      for (int half = 128; half > 0; half >>= 1) {
        if (t < half) sums[t] += sums[t + half];
        BARRIER;
      }
      if (t == 0) row[k] = share[0] > 0 ? sums[0] / share[0] : NAN;
      BARRIER;
    }
    BARRIER;
  }
}
