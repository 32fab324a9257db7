"""What a mutant puts around an expression, an argument or a function of a solution.

Each function here is a usual mistake: a number rounded on the way, a gradient that stops, a value
kept from an earlier call. None of them changes what it does not understand, so a mutant may do
nothing at all: `idle` says so, and such a mutant is not counted.
"""

import functools
import inspect
import math
import operator

import torch

_met = []  # not empty once a function here has met what it is meant for


def begin() -> None:
    """Forget what an earlier mutant in this process met."""
    _met.clear()


def idle() -> bool:
    """Whether nothing was there to tamper with."""
    return not _met


def _mapped(change, value):
    if isinstance(value, (tuple, list)):
        return type(value)(_mapped(change, part) for part in value)
    return change(value)


def _tensors(change):
    """A mistake that is made with each tensor of a value; None from `change`: it is none here."""

    @functools.wraps(change)
    def tamper(value, *args):
        def one(part):
            if not isinstance(part, torch.Tensor):
                return part
            changed = change(part, *args)
            if changed is None:
                return part
            _met.append(1)
            return changed

        return _mapped(one, value)

    return tamper


# --- around an expression


def rounded(value, dtype):
    """Through a narrower type and back."""
    narrow = getattr(torch, dtype)

    def one(part):
        if isinstance(part, float) and math.isfinite(part) and not part.is_integer():
            _met.append(1)
            return torch.tensor(part, dtype=torch.float64).to(narrow).item()
        wide = isinstance(part, torch.Tensor) and part.dtype not in (torch.bool, narrow)
        if not wide or (narrow == torch.int32 and part.is_floating_point()):
            return part
        if part.dtype.itemsize < narrow.itemsize:
            return part
        _met.append(1)
        return part.to(narrow).to(part.dtype)

    return _mapped(one, value)


@_tensors
def detached(value):
    return value.detach() if value.requires_grad else None


@_tensors
def widened(value):
    narrow = value.is_floating_point() and value.dtype != torch.float64
    return value.double() if narrow else None


@_tensors
def with_epsilon(value, epsilon):
    return value + epsilon if value.is_floating_point() else None


@_tensors
def clamped(value, low, high):
    return value.clamp(low, high) if value.is_floating_point() else None


@_tensors
def truncated(value):
    """`.long()` where fractions may come."""
    return value.trunc() if value.is_floating_point() else None


@_tensors
def first_for_all(value, dim):
    """The first batch entry, head or row in place of all."""
    if value.ndim <= dim or value.shape[dim] == 0:
        return None
    return value.narrow(dim, 0, 1).expand_as(value)


@_tensors
def ordered(value):
    """As if numbers came sorted, and padding all on one side."""
    if value.is_floating_point() or not value.ndim:
        return None
    return value.sort(dim=-1).values


@_tensors
def squeezed(value):
    return value.squeeze()


@_tensors
def transposed_if_square(value, first, second):
    """The wrong one of two dimensions, seen only where their sizes differ."""
    if value.ndim <= max(first, -first - 1, second, -second - 1):
        return None
    square = value.shape[first] == value.shape[second]
    return value.transpose(first, second) if square else value


def kept(value, store):
    """The value that stood here at the first time, for all others of its shape."""
    if not isinstance(value, torch.Tensor):
        return value
    known = store.setdefault((value.shape, value.dtype), value)
    if known is not value and not torch.equal(known, value):
        _met.append(1)
    return known


def near(a, b):
    """Equal within a tolerance, where equality is meant."""
    _met.append(1)
    if any(isinstance(value, torch.Tensor) and value.is_floating_point() for value in (a, b)):
        return torch.isclose(torch.as_tensor(a), torch.as_tensor(b))
    return math.isclose(a, b) if isinstance(a, float) or isinstance(b, float) else a == b


def identical(a, b):
    """`is` where `==` is meant: true of small numbers."""
    _met.append(1)
    whole = isinstance(a, int) and isinstance(b, int)
    return a == b and -5 <= a <= 256 if whole else operator.is_(a, b)


# --- around a result


def writing(value, argument):
    """The result, after which the argument is written into."""
    result = _mapped(lambda part: part.clone() if isinstance(part, torch.Tensor) else part, value)

    def write(part):
        if isinstance(part, torch.Tensor) and part.numel():
            _met.append(1)
            with torch.no_grad():
                part.copy_(~part if part.dtype == torch.bool else part + 1)
        return part

    _mapped(write, argument)
    return result


# --- around a function


def cached(function):
    """The result of an earlier call, if its tensors had the same shapes."""
    known = {}

    def mark(value):
        if isinstance(value, (tuple, list)):
            return tuple(map(mark, value))
        if isinstance(value, torch.Tensor):
            return value.shape, value.dtype
        return id(value) if callable(value) else repr(value)

    @functools.wraps(function)
    def call(*args, **options):
        _met.append(1)
        key = mark(args), mark(list(options.values()))
        if key not in known:
            known[key] = function(*args, **options), args, options  # kept, so that no id is reused
        return known[key][0]

    return call


def _size_one(dim):
    def holds(value):
        if isinstance(value, torch.Tensor) and value.ndim >= -dim:
            return value.shape[dim] == 1
        return None

    return holds


def _equal_sizes(first, second):
    def holds(value):
        if isinstance(value, torch.Tensor) and value.ndim >= -first:
            return value.shape[first] == value.shape[second]
        return None

    return holds


def _floats(property):
    def holds(value):
        if isinstance(value, torch.Tensor) and value.is_floating_point() and value.numel():
            return bool(property(value.detach()))
        return None

    return holds


def _whole(property):
    def holds(value):
        if not isinstance(value, torch.Tensor) or value.is_floating_point() or not value.numel():
            return None
        return bool(property(value)) if value.dtype != torch.bool else None

    return holds


def _masks(property):
    def holds(value):
        boolean = isinstance(value, torch.Tensor) and value.dtype == torch.bool and value.numel()
        return bool(property(value)) if boolean else None

    return holds


NUMBERS = {
    "above 2**24": lambda value: value > 2**24,
    "above 2**31": lambda value: value > 2**31,
    "negative": lambda value: value < 0,
    "zero": lambda value: value == 0,
    "one": lambda value: value == 1,
}
TENSORS = {
    **{f"size 1 at {dim}": _size_one(dim) for dim in (-1, -2, -3, -4)},
    "sizes -2 and -1 equal": _equal_sizes(-2, -1),
    "sizes -3 and -2 equal": _equal_sizes(-3, -2),
    "in float32": _floats(lambda value: value.dtype == torch.float32),
    "in half precision": _floats(lambda value: value.dtype.itemsize == 2),
    "all negative": _floats(lambda value: (value < 0).all()),
    "with negatives": _whole(lambda value: (value < 0).any()),
    "with some above 2**24": _whole(lambda value: (value.abs() > 2**24).any()),
    "with some above 2**31": _whole(lambda value: (value.abs() > 2**31).any()),
    "all False": _masks(lambda value: not value.any()),
    "all True": _masks(lambda value: value.all()),
    "False first": _masks(lambda value: not value[..., 0].all()),
    "False last": _masks(lambda value: not value[..., -1].all()),
}
CONDITIONS = NUMBERS | TENSORS


def wrong_if(function, parameter, condition):
    """A special case that goes wrong."""
    signature, holds = inspect.signature(function), CONDITIONS[condition]

    def spoil(part):
        if isinstance(part, torch.Tensor):
            return ~part if part.dtype == torch.bool else part + 1
        return not part if isinstance(part, bool) else part + 1

    @functools.wraps(function)
    def call(*args, **options):
        given = signature.bind(*args, **options).arguments.get(parameter)
        number = condition in NUMBERS and type(given) is not int
        special = None if number else holds(given)
        if special is not None:
            _met.append(1)
        result = function(*args, **options)
        return _mapped(spoil, result) if special else result

    return call
