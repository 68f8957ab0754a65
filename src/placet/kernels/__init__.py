"""Numba kernels: arrays in, numbers out; no checks, no strings, no objects."""
