"""Faults that break claims of more than one chapter: patches for :class:`Perturbation`."""

import types
from collections.abc import Callable


def transposed(make: Callable) -> Callable:
    """Turn or shift the other way: the inverse of an orthogonal matrix."""
    return lambda *arguments, **options: make(*arguments, **options).mT


def unaffected(scheme: type) -> type:
    """Keep a class as it is while a function of its module is broken.

    Its methods see the module's names as they are now, so this patch stands before the fault.
    """

    def as_now(method: types.FunctionType) -> types.FunctionType:
        copy = types.FunctionType(
            method.__code__,
            dict(method.__globals__),
            method.__name__,
            method.__defaults__,
            method.__closure__,
        )
        copy.__kwdefaults__ = method.__kwdefaults__
        return copy

    methods = {
        name: as_now(value)
        for name, value in vars(scheme).items()
        if isinstance(value, types.FunctionType)
    }
    return type(scheme.__name__, (scheme,), methods)
