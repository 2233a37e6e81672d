"""Numerical kernels: norms, projections, root finders and decompositions, independent of sets, losses and solvers."""
