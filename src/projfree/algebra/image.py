"""Lazy images: A w as a mixture of vectors whose own images a pass has met, or will meet."""

from __future__ import annotations

from projfree.checks import Array

#: A mixture of more unmet vectors than this is cheaper to send through A as one vector.
MOST_PENDING = 2


class Source:
    """A vector and, once some pass over the data has met it, its image. Compared by identity.

    An image may also be given as ``parts``, a sum of known arrays that is formed when it is first asked for.
    """

    __slots__ = ("_image", "parts", "vector")

    def __init__(
        self, vector: Array | None, image: Array | None = None, parts: list[tuple[float, Array]] | None = None
    ) -> None:
        self.vector, self._image, self.parts = vector, image, parts

    @property
    def known(self) -> bool:
        """Whether a pass has met it."""
        return self._image is not None or self.parts is not None

    @property
    def image(self) -> Array | None:
        """The image, None while no pass has met the vector."""
        if self.parts is not None:
            self.image = _combine(self.parts)
        return self._image

    @image.setter
    def image(self, image: Array) -> None:
        self._image, self.parts = image, None


class Image:
    r"""The image :math:`\sum_j c_j A v_j` of a mixture of sources, computed only when it is asked for.

    Mixing costs nothing while a source is pending; known sources are folded into one array, so that a mixture
    of any length holds at most one known and `MOST_PENDING` pending sources. Without terms it is zero.
    """

    __slots__ = ("terms",)

    def __init__(self, terms: dict[Source, float]) -> None:
        self.terms = terms

    @classmethod
    def of(cls, w: Array) -> Image:
        """The image of ``w`` itself, still to be met."""
        return cls({Source(w): 1.0})

    def mixed(self, a: float, other: Image, b: float) -> Image:
        """``a * self + b * other``."""
        terms = {source: a * c for source, c in self.folded().items()}
        for source, c in other.folded().items():
            terms[source] = terms.get(source, 0.0) + b * c
        return Image({source: c for source, c in terms.items() if c != 0.0})

    def folded(self) -> dict[Source, float]:
        """The terms, after joining the known ones to one source in place."""
        if sum(s.known for s in self.terms) > 1:
            parts = [(c, s.image) for s, c in self.terms.items() if s.image is not None]
            self.terms = {Source(None, parts=parts): 1.0, **dict(self.pending())}
        return self.terms

    def pending(self) -> list[tuple[Source, float]]:
        """The sources that no pass has met, with their coefficients."""
        return [(s, c) for s, c in self.terms.items() if not s.known]

    def known(self) -> Array | None:
        """The sum of the known terms; None where there are none."""
        known = [(c, s.image) for s, c in self.folded().items() if s.image is not None]
        return _combine(known) if known else None

    def settle(self, array: Array) -> None:
        """Record that the whole image is ``array``."""
        self.terms = {Source(None, array): 1.0}


def _combine(known: list[tuple[float, Array]]) -> Array:
    (c, image), *rest = known
    total = image if c == 1.0 else c * image
    for c, image in rest:
        total = total + c * image
    return total
