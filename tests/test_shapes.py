"""Tests of :mod:`lib.shapes`."""

import itertools

import pytest
import torch

from lib.shapes import broadcasts_to

SHAPES = [shape for n in range(4) for shape in itertools.product((0, 1, 2, 3), repeat=n)]


@pytest.mark.parametrize("target", SHAPES, ids=str)
def test_torch_would_expand_it(target):
    for shape in SHAPES:
        try:
            torch.empty(shape).expand(target)
            expands = True
        except RuntimeError:
            expands = False
        assert broadcasts_to(shape, target) == expands, shape
        assert broadcasts_to(torch.Size(shape), torch.Size(target)) == expands
