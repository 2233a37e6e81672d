"""The convex problem of matrix completion and its alternating solver, on which the estimators are built."""
