"""Checks of sizes and shapes that several modules make of what they are given."""

from collections.abc import Sequence

from torch import Tensor

__all__ = ["broadcasts_to", "check_head_dim", "check_sizes"]


def broadcasts_to(shape: Sequence[int], target: Sequence[int]) -> bool:
    """Whether a tensor of ``shape`` can be expanded to ``target``.

    In plain Python, because it is called several times per layer and decoded token:
    :func:`torch.broadcast_shapes` takes longer than a small attention.

    Args:
        shape: the tensor's shape.
        target: the shape to expand to; it may have more dimensions, in front.

    Example:
        >>> broadcasts_to((3, 1), (2, 3, 4)), broadcasts_to((2, 1), (2, 3, 4))
        (True, False)
    """
    missing = len(target) - len(shape)
    if missing < 0:
        return False
    for size, target_size in zip(shape, target[missing:], strict=True):
        if size != target_size and size != 1:
            return False
    return True


def check_head_dim(**vectors: Tensor) -> None:
    """Refuse vectors that cannot be multiplied with each other.

    Raises:
        ValueError: if their last dimensions differ; it names all of them.
    """
    widths = {name: tensor.shape[-1] for name, tensor in vectors.items()}
    if len(set(widths.values())) > 1:
        raise ValueError(
            f"all need the same head_dim, their last dimension, got "
            f"{', '.join(f'{name} with {width}' for name, width in widths.items())}"
        )


def check_sizes(**sizes: int) -> None:
    """Refuse a size below 1.

    Raises:
        ValueError: for the first such size, by its name.
    """
    for name, size in sizes.items():
        if size < 1:
            raise ValueError(f"{name} must be 1 or more, got {name}={size}")
