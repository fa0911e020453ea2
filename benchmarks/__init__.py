"""Measure speed and quality, attack, and check releases: ``python -m benchmarks.NAME``.

A package with this file, since the wheels of pyarrow 17 have a folder of the same name.
"""
