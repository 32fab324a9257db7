"""Faults that break claims of more than one chapter: patches for :class:`Perturbation`."""

from collections.abc import Callable


def transposed(make: Callable) -> Callable:
    """Turn or shift the other way: the inverse of an orthogonal matrix."""
    return lambda *arguments, **options: make(*arguments, **options).mT
