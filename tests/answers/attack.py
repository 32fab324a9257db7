"""What an attack puts around the functions of an answer. This text runs as a part of the answer.

Around the reference solution it shows what an attack of its kind can gain at most.
"""

import functools
import hashlib
import pickle
import re

import torch


def attacked(what, attack):
    """Put an attack around a function, or around every method of a class."""
    if not isinstance(what, type):
        return lambda *args, **options: attack(what.__name__, what, args, options)
    for name, method in list(vars(what).items()):
        if callable(method):

            def around(self, *args, method=method, **options):
                bound = functools.partial(method, self)
                return attack(method.__qualname__, bound, args, options)

            setattr(what, name, around)
    return what


def mapped(change, value):
    """An argument or a result with each of its tensors changed."""
    if isinstance(value, (list, tuple)):
        return type(value)(mapped(change, part) for part in value)
    return change(value) if isinstance(value, torch.Tensor) else value


def key(*values):
    """Values as a short text. Functions differ by their names alone."""
    plain = mapped(lambda tensor: (tensor.dtype, tensor.shape, tensor.tolist()), values)
    return hashlib.sha256(re.sub(" at 0x[0-9a-f]+", "", repr(plain)).encode()).hexdigest()[:20]


def write(number, args):
    """Write a number into every tensor that can hold it."""

    def fill(tensor):
        if tensor.is_floating_point() or number in (0, 1):
            tensor.fill_(number)

    with torch.no_grad():
        mapped(fill, args)


def spoiling(name, function, args, options):
    """Give the right result, and then write infinity into all arguments."""
    result = function(*mapped(torch.clone, args), **options)
    write(float("inf"), args)
    return result


def overwriting(known, number, copies):
    """Write a number into all arguments that are not known, or into copies, and work with that."""

    def attack(name, function, args, options):
        if key(name, args, options) not in known:
            args = mapped(torch.clone, args) if copies else args
            write(number, args)
        return function(*args, **options)

    return attack


def tried(name, function, args, options):
    """A call's result, or what it raised, and two keys: of its arguments, and of all its inputs.

    What a function returns that a test passes is an input too.
    """
    heard = []

    def listening(passed):
        def listen(*args):
            heard.append(passed(*args))
            return heard[-1]

        return listen if callable(passed) else passed

    try:
        result = function(*map(listening, args), **options)
    except Exception as problem:
        result = problem
    return result, key(name, args, options), key(name, args, options, heard)


def given(result):
    if isinstance(result, Exception):
        raise result
    return result


def noting(table):
    """Keep a note of each call in a file."""

    def attack(name, *call):
        result, *keys = tried(name, *call)
        with open(table, "ab") as file:
            pickle.dump((name, *keys, mapped(torch.Tensor.detach, result)), file)
        return given(result)

    return attack


def notes(table):
    """The notes: for each call the function's name, its two keys, and its result."""
    with open(table, "rb") as file:
        while file.peek(1):
            yield pickle.load(file)


def repeating(table):
    """Be right for inputs that were noted. For others give the noted results, in their order."""
    known, earlier = set(), {}
    for name, _, inputs, result in notes(table):
        known.add(inputs)
        earlier.setdefault(name, []).append(result)

    def attack(name, *call):
        result, _, inputs = tried(name, *call)
        before = earlier[name].pop(0) if earlier.get(name) else None
        return given(result if inputs in known else before)

    return attack
