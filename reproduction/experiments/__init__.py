"""The experiments: every module of this package with an ``EXPERIMENT`` is one."""
