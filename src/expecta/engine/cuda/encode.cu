// Rows of values on the card become codes of states: the value itself, or the number of
// values where it is unknown.
//
//   CELL      what the table is made of
//   UNKNOWN   whether x is unknown
#define COLUMNS 16  // that a thread reads, one beside the other

extern "C" KERNEL(256, 1) encode(
    const CELL* cells, i64 row_stride, i64 column_stride, i64 start, i64 before /* rows that are not among the cells */, int rows, int lanes, int n_variables,
    const int* cards, code* codes, i64* bad /* the lowest cell that holds no value */) {
  int lane = blockIdx.x * blockDim.x + threadIdx.x;
  if (lane >= lanes) return;
  i64 row = start + (lane < rows ? lane : rows - 1);
  int last = (blockIdx.y + 1) * COLUMNS < n_variables ? (blockIdx.y + 1) * COLUMNS : n_variables;
  for (int v = blockIdx.y * COLUMNS; v < last; ++v) {
    CELL x = cells[row * row_stride + v * column_stride];
    int card = READ(cards + v), state = card;
    if (!(UNKNOWN)) {
      if (x >= 0 && x < card && x == (CELL)(int)x) state = (int)x;
      else LOWER(bad, (before + row) * n_variables + v);
    }
    codes[(i64)v * lanes + lane] = (code)state;
  }
}
