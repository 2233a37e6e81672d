"""Numerical kernels: norms, projections, root finders and decompositions, knowing no set, loss or solver."""
