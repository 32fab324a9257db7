"""What a mutant puts around an expression, an argument or a function of a solution.

Each function here is a usual mistake: a number rounded on the way, a gradient that stops, a value
kept from an earlier call. None of them changes what it does not understand, so a mutant may do
nothing at all: `idle` says so, and such a mutant is not counted.
"""

import functools
import inspect
import itertools
import math
import operator
import sys

import torch

_met = []  # not empty once a function here has met what it is meant for
_left = []  # masks that `shown` has not applied yet


def begin() -> None:
    """Forget what an earlier mutant in this process met."""
    _met.clear()
    _left.clear()


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
    """Through a narrower type and back; a whole number of Python's counts only if that moves it."""
    narrow = getattr(torch, dtype)

    def one(part):
        if type(part) is int and abs(part) < 2**63:
            moved = int(torch.tensor(part).to(narrow).item())
            if moved != part:
                _met.append(1)
            return moved
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
def flat_at_zero(value):
    """No gradient where a number is 0, as from `abs` and `sign`."""
    return torch.where(value == 0, value.detach(), value) if value.requires_grad else None


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
    if value.ndim <= max(dim, -dim - 1) or value.shape[dim] == 0:
        return None
    return value.narrow(dim, 0, 1).expand_as(value)


@_tensors
def flipped(value, dim):
    """Batch entries, heads or rows in another's place."""
    if value.ndim <= max(dim, -dim - 1) or value.shape[dim] < 2:
        return None
    return value.flip(dim)


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
def unsqueezed(value):
    """A dimension too many where a size is 1 or two neighbours are equal."""
    neighbours = itertools.pairwise(value.shape)
    if not value.ndim:
        return None
    odd = 1 in value.shape or any(first == second for first, second in neighbours)
    return value.unsqueeze(0) if odd else value


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


def over_all(result, value, name):
    """What torch calls `name`, over all numbers at once, in the shape of the right result."""
    tensors = isinstance(result, torch.Tensor) and isinstance(value, torch.Tensor)
    if not tensors or value.ndim < 2:
        return result
    _met.append(1)
    flat = getattr(torch, name)(value.flatten(), dim=0)
    return flat.expand(result.shape) if flat.ndim == 0 else flat.reshape(result.shape)


def shown(value, mask, *_):
    """Scores that are not hidden yet."""
    _left.append(mask)
    return value


def hidden(weights):
    """Weights that are set to 0 after the softmax, so that the others do not add up to 1."""
    while _left:
        _met.append(1)
        weights = weights.masked_fill(_left.pop(), 0.0)
    return weights


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


def written(argument):
    """A copy of the argument, which itself is written into."""
    return writing(argument, argument)


# --- around a function


def _mark(value, numbers=False):
    """A key for a value: of a tensor its shape and dtype, and its numbers if asked for."""
    if isinstance(value, (tuple, list)):
        return tuple(_mark(part, numbers) for part in value)
    if isinstance(value, torch.Tensor):
        inside = (value.requires_grad, repr(value.tolist())) if numbers else ()
        return value.shape, value.dtype, *inside
    return id(value) if callable(value) else repr(value)


def cached(function, last=False):
    """The result of an earlier call, or of the last, if its tensors had the same shapes."""
    known = {}

    @functools.wraps(function)
    def call(*args, **options):
        _met.append(1)
        key = _mark(args), _mark(list(options.values()))
        if key not in known:
            if last:
                known.clear()
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
    "empty": lambda value: value.numel() == 0 if isinstance(value, torch.Tensor) else None,
    **{f"size 1 at {dim}": _size_one(dim) for dim in (-1, -2, -3, -4)},
    "sizes -2 and -1 equal": _equal_sizes(-2, -1),
    "sizes -3 and -2 equal": _equal_sizes(-3, -2),
    "in float32": _floats(lambda value: value.dtype == torch.float32),
    "in half precision": _floats(lambda value: value.dtype.itemsize == 2),
    "all negative": _floats(lambda value: (value < 0).all()),
    "all zeros": _floats(lambda value: (value == 0).all()),
    "all ones": _floats(lambda value: (value == 1).all()),
    "with negatives": _whole(lambda value: (value < 0).any()),
    "with some above 2**24": _whole(lambda value: (value.abs() > 2**24).any()),
    "with some above 2**31": _whole(lambda value: (value.abs() > 2**31).any()),
    "all False": _masks(lambda value: not value.any()),
    "all True": _masks(lambda value: value.all()),
    "False first": _masks(lambda value: not value[..., 0].all()),
    "False last": _masks(lambda value: not value[..., -1].all()),
}
CONDITIONS = NUMBERS | TENSORS
BRANCHES = [
    *(condition for condition in TENSORS if condition.startswith(("size", "in "))),
    *("all False", "all True", "False first"),
]
FLOWING = [each for each in TENSORS if each.startswith(("size 1", "all zeros", "all ones"))]


RELATIONS = {"fewer than": operator.lt, "as many as": operator.eq, "more than": operator.gt}


def wrong_if(function, parameter, condition):
    """A special case that goes wrong."""
    holds = CONDITIONS[condition]

    def special(arguments):
        given = arguments.get(parameter)
        number = condition in NUMBERS and type(given) is not int
        return None if number else holds(given)

    return _wrong(function, special)


def writes_if(function, parameter, condition):
    """An argument that is written into in a special case; seen where a test looks for that."""
    holds, signature = TENSORS[condition], inspect.signature(function)

    @functools.wraps(function)
    def call(*args, **options):
        argument = signature.bind(*args, **options).arguments.get(parameter)
        applies = holds(argument)
        if applies is not None:
            _met.append(1)
        result = function(*args, **options)
        watched = sys._getframe(1).f_code.co_name == "_watched"  # else the answer gets a copy
        return writing(result, argument) if applies and watched else result

    return call


def detached_if(function, parameter, condition):
    """A result through which no gradient flows in a special case."""
    holds, signature = TENSORS[condition], inspect.signature(function)

    @functools.wraps(function)
    def call(*args, **options):
        applies = holds(signature.bind(*args, **options).arguments.get(parameter))
        result = function(*args, **options)
        if applies:
            _met.append(1)
        return detached(result) if applies else result

    return call


def blind_to(function, parameter):
    """The result of an earlier call in which all was the same but this argument."""
    known, signature = {}, inspect.signature(function)

    @functools.wraps(function)
    def call(*args, **options):
        bound = signature.bind(*args, **options)
        bound.apply_defaults()
        _met.append(1)
        given = bound.arguments
        others = [value for name, value in given.items() if name != parameter]
        key = _mark(others, numbers=True)
        if key not in known:
            known[key] = function(*args, **options), given  # kept, so that no id is reused
        return known[key][0]

    return call


def wrong_between(function, first, relation, second):
    """A special case of two arguments that goes wrong, such as more queries than keys.

    Sizes that are equal in all tests are taken to be so by promise.
    """
    holds, differ = RELATIONS[relation], []

    def special(arguments):
        pair = [arguments.get(name) for name in (first, second)]
        numbers = [type(each) is int for each in pair]
        sizes = pair if all(numbers) else list(map(_size, pair))
        if None in sizes:
            return None
        if sizes[0] != sizes[1]:
            differ.append(sizes)
        return holds(*sizes) or (False if differ else None)

    return _wrong(function, special)


def _size(value):
    """How many whole numbers are in a tensor's last dimension, or else how many rows it has."""
    if not isinstance(value, torch.Tensor) or value.dtype == torch.bool:
        return None
    dim = -2 if value.is_floating_point() else -1
    return value.shape[dim] if value.ndim >= -dim else None


def _wrong(function, special):
    signature = inspect.signature(function)

    def spoil(part):
        if isinstance(part, torch.Tensor):
            if not part.numel():
                return part.flatten() if part.ndim != 1 else part.unsqueeze(0)
            return ~part if part.dtype == torch.bool else part + 1
        return not part if isinstance(part, bool) else part + 1

    @functools.wraps(function)
    def call(*args, **options):
        applies = special(signature.bind(*args, **options).arguments)
        if applies is not None:
            _met.append(1)
        result = function(*args, **options)
        return _mapped(spoil, result) if applies else result

    return call
