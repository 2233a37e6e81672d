"""The experiments: each module of this package that defines ``EXPERIMENT``."""
