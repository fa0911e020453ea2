"""Every empirical figure, from one command: ``python -m benchmarks.evaluation --help``.

Parts are A (the paper as published), B (against other ways with holes), C (densities), D
(speed); ``page`` writes what was found as docs/results.md. Modules: `data` reads tables, `holes`
makes holes, `methods` are what is compared, `metrics` judge it, `cells` keep results.
"""
