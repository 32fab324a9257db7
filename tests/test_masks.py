"""lib.masks: by hand, a loop over all pairs, errors."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lib import attention, efficient
from lib.masks import causal_mask, sliding_window_mask


def test_causal_mask_by_hand():
    T, N = True, False
    assert causal_mask(3, 3).tolist() == [[T, N, N], [T, T, N], [T, T, T]]
    assert causal_mask(2, 4).tolist() == [[T, T, T, N], [T, T, T, T]]  # last sees last
    assert causal_mask(3, 1).tolist() == [[N], [N], [T]]
    assert causal_mask(2, 4, offset=0).tolist() == [[T, N, N, N], [T, T, N, N]]
    assert causal_mask(2, 3, offset=-1).tolist() == [[N, N, N], [T, N, N]]
    assert causal_mask(2, 3, offset=5).all()
    assert causal_mask(0, 3).shape == (0, 3)
    assert causal_mask(1, 5).all()  # one new query with a cache sees all of it


def test_window_by_hand():
    assert sliding_window_mask(3, 5, window=1).tolist() == [
        [False, True, True, False, False],
        [False, False, True, True, False],
        [False, False, False, True, True],
    ]
    assert sliding_window_mask(3, 5, window=1, causal=False, offset=0).tolist() == [
        [True, True, False, False, False],
        [True, True, True, False, False],
        [False, True, True, True, False],
    ]
    assert sliding_window_mask(4, 4, window=0, global_tokens=[1], causal=False).tolist() == [
        [True, True, False, False],
        [True, True, True, True],
        [False, True, True, False],
        [False, True, False, True],
    ]


@given(
    q_len=st.integers(0, 6),
    k_len=st.integers(0, 8),
    window=st.integers(0, 9),
    offset=st.integers(-4, 9) | st.none(),
    causal=st.booleans(),
    tokens=st.sets(st.integers(0, 7)),
)
def test_window_loop(q_len, k_len, window, offset, causal, tokens):
    tokens = sorted(token for token in tokens if token < k_len)
    result = sliding_window_mask(
        q_len, k_len, window=window, global_tokens=tokens, offset=offset, causal=causal
    )
    assert result.dtype == torch.bool
    assert result.shape == (q_len, k_len)
    for i in range(q_len):
        m = i + (k_len - q_len if offset is None else offset)
        for n in range(k_len):
            near = abs(m - n) <= window or m in tokens or n in tokens
            assert result[i, n].item() == (near and (n <= m or not causal))


@given(q_len=st.integers(1, 6), k_len=st.integers(1, 8))
def test_a_wide_window_is_the_causal_mask(q_len, k_len):
    assert torch.equal(sliding_window_mask(q_len, k_len, window=99), causal_mask(q_len, k_len))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"q_len": -1, "k_len": 2, "window": 1}, "q_len=-1 and k_len=2"),
        ({"q_len": 1, "k_len": 2, "window": -3}, "window=-3"),
        ({"q_len": 1, "k_len": 2, "window": 1, "global_tokens": [0, 2]}, r"\[2\].*k_len=2"),
        ({"q_len": 1, "k_len": 2, "window": 1, "global_tokens": [-1]}, r"\[-1\].*k_len=2"),
    ],
)
def test_window_errors(options, message):
    with pytest.raises(ValueError, match=message):
        sliding_window_mask(**options)


@pytest.mark.parametrize("lengths", [(-1, 2), (1, -2)])
def test_causal_mask_errors(lengths):
    with pytest.raises(ValueError, match="q_len={} and k_len={}".format(*lengths)):
        causal_mask(*lengths)


def test_masks_are_found_where_the_chapters_import_them():
    assert attention.causal_mask is causal_mask
    assert efficient.sliding_window_mask is sliding_window_mask
