"""A reproduction of "Revisiting Projection-Free Optimization for Strongly Convex Constraint Sets" (AAAI 2019).

Each module of `reproduction.experiments` is one experiment: what it measures, its claims and its figures. `runner`
measures and stores, `rules` judge, `report` writes the page. Run it with ``python -m reproduction --quick``.

It uses what a user of `projfree` has: the names of ``projfree.__all__``, `projfree.paper` and `projfree.datasets`.
"""
