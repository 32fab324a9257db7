"""A question about shapes that several modules ask of what they are given."""

from collections.abc import Sequence

__all__ = ["broadcasts_to"]


def broadcasts_to(shape: Sequence[int], target: Sequence[int]) -> bool:
    """Say whether a tensor of ``shape`` can be expanded to ``target``.

    In plain Python, because it is asked several times per layer and decoded token:
    :func:`torch.broadcast_shapes` takes longer than a small attention.

    Args:
        shape: of the tensor that is given.
        target: of the tensor that is wanted; it may have more dimensions, in front.

    Example:
        >>> broadcasts_to((3, 1), (2, 3, 4)), broadcasts_to((2, 1), (2, 3, 4))
        (True, False)
    """
    missing = len(target) - len(shape)
    if missing < 0:
        return False
    for given, wanted in zip(shape, target[missing:], strict=True):
        if given != wanted and given != 1:
            return False
    return True
