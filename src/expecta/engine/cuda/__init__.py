"""The walk of a pair on a graphics card: the same plan, the same algebras, other kernels."""
