"""What solvers hold besides the data, in bytes: upper counts of their arrays, compared with peaks by a test."""

from __future__ import annotations

from projfree.data.dense import FINGERPRINT_ROWS
from projfree.data.second_moments import BLOCK_BYTES, LANE_ROWS, LANES, table_bytes
from projfree.solvers.costs import Costs

#: Images, and arrays of their size, at the peak: of tangents, of a search for an intercept, of hulls of two and of
#: three points, and of the tangent at an exact solution, where nothing is kept.
TANGENT_IMAGES, SEARCH_IMAGES, SEGMENT_IMAGES, TRIANGLE_IMAGES, EXACT_IMAGES = 9, 2, 12, 16, 7
#: Vectors of the size of a parameter that points, tangents and averages of tangents hold.
VECTORS = 40
#: And those that conjugate gradients on products with a Hessian work with.
PRODUCT_VECTORS = 20
#: Matrices of that side at the peak of the solution of a quadratic model.
MODEL_MATRICES = 7
#: Vertices of an active set, about, and bytes of the part of an image that a block of rows has.
VERTICES, IMAGE_BLOCK = 100, 1 << 17
#: Arrays of the size of the second derivatives of a block of rows, while a coupled loss forms them on a hull.
SECONDS = 2


def tangents(costs: Costs) -> int:
    """Bytes of a method that takes tangents."""
    return _images(costs, TANGENT_IMAGES + SEARCH_IMAGES * costs.load.searches)


def hulls(costs: Costs, points: int) -> int:
    """Bytes of a method that searches on hulls of two or three points."""
    k = costs.load.outputs
    seconds = 8 * (costs.f.rows or 0) * k * k if costs.load.coupled and costs.load.searches else 0
    images = SEGMENT_IMAGES if points == 2 else TRIANGLE_IMAGES
    return _images(costs, images) + SECONDS * min(BLOCK_BYTES, seconds)


def active(costs: Costs) -> int:
    """Bytes of a method that keeps an active set, whose vertices are arrays while their curvature is formed."""
    from projfree.solvers.correction import MOST_ENTRIES

    vertices = min(VERTICES, costs.parameters + 1, MOST_ENTRIES // max(1, costs.parameters))
    return hulls(costs, 2) + vertices * (3 * costs.vector_bytes + min(costs.image_bytes, IMAGE_BLOCK))


def gram(costs: Costs) -> int:
    """Bytes of the Gram matrix of the rows, and of the solution of a quadratic with it."""
    d, D = costs.f.shape[0], costs.parameters
    side = d if costs.ball.as_lp(costs.f.shape) is not None else D  # columns share a matrix over l_p balls
    sums = 8 * (LANES + 2) * (d + costs.load.outputs + 1) ** 2
    return _images(costs, EXACT_IMAGES) + _table(costs) + max(sums, 8 * MODEL_MATRICES * side * side)


def hessian(costs: Costs) -> int:
    """Bytes of Hessians, of the solution of models with them, and of a search where a step is too long."""
    d, D, k = costs.f.shape[0], costs.parameters, costs.load.outputs
    columns, numbers = (k * (k - 1) // 2, 2 * k * k) if costs.load.coupled else (k, 3 * k)
    blocks = min(2 * BLOCK_BYTES, 8 * (costs.f.rows or 0) * (numbers + (d + 1) ** 2 * costs.load.coupled))
    sums = 8 * (LANES + 1) * columns * (d + 1) ** 2
    formed = tangents(costs) + _table(costs) + max(blocks + sums, 8 * MODEL_MATRICES * D * D)
    return max(formed, hulls(costs, 2) + 8 * D * D)


def products(costs: Costs) -> int:
    """Bytes of Newton's method from products, and of a search where a step is too long."""
    return max(tangents(costs), hulls(costs, 2)) + PRODUCT_VECTORS * costs.vector_bytes


def working_set(costs: Costs, most: int, outputs: int) -> int:
    """Bytes of products of at most so many features and outputs that meet, and of quadratics with them."""
    side = min(most, costs.f.shape[0] * outputs)
    stored = 2 * 12 * int(costs.size)  # the columns in use
    return tangents(costs) + stored + 8 * MODEL_MATRICES * side * side


def krylov(costs: Costs, dimension: int) -> int:
    """Bytes of a Krylov space while the array that holds its basis is made larger, and of steps without one."""
    from projfree.numerics.lanczos import ROOM

    return products(costs) + 3 * (dimension + ROOM) * costs.vector_bytes


def _images(costs: Costs, count: int) -> int:
    """Bytes of so many images, of vectors, of copies of the data, and of what a fingerprint is taken of."""
    rows = costs.f.rows
    seen = 0.0
    if rows is not None or costs.f.has_quadratic_form:
        seen = 16.0 * costs.size * min(1.0, FINGERPRINT_ROWS / max(rows or 1, 1))
    return int(seen) + count * costs.image_bytes + VECTORS * costs.vector_bytes


def _table(costs: Costs) -> int:
    """Bytes of the rows that are read, shifted and multiplied at a time."""
    n, d = costs.f.rows or 0, costs.f.shape[0]
    return 8 * min(n, LANES * LANE_ROWS) * (d + 1) + min(table_bytes(d), int(8 * costs.size) * (n > 0))
