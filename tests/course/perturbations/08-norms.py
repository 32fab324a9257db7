"""What breaks each claim of chapter 08, and nothing else in it."""

from collections.abc import Callable

from torch import Tensor

from lib.transformer import LanguageModel  # whole, before anything in lib.block is patched
from tests.course.execution import Perturbation


def unbiased(norm: Callable) -> Callable:
    """Divide the squares by d - 1."""

    def norm_wrongly(x: Tensor, weight=None, bias=None, *, eps: float = 1e-5) -> Tensor:
        y = (x - x.mean(dim=-1, keepdim=True)) / (x.var(dim=-1, keepdim=True) + eps).sqrt()
        return y if weight is None else y * weight + bias

    return norm_wrongly


def centred(norm: Callable) -> Callable:
    """Take the mean out first, as LayerNorm does."""
    return lambda x, *arguments, **options: norm(
        x - x.mean(dim=-1, keepdim=True), *arguments, **options
    )


def residual_from_the_norm(block: type) -> type:
    """Let pre-norm's residual take the normalized x."""

    class Wrong(block):
        def _residual(self, x, sublayer, norm):
            if not self.pre_norm:
                return super()._residual(x, sublayer, norm)
            return norm(x) + self.dropout(sublayer(norm(x))), None

    return Wrong


def norm_inside_the_sum(block: type) -> type:
    """Let post-norm normalize the output of the sublayer, and not the sum."""

    class Wrong(block):
        def _residual(self, x, sublayer, norm):
            if self.pre_norm:
                return super()._residual(x, sublayer, norm)
            return x + self.dropout(norm(sublayer(x))), None

    return Wrong


def threefold(attention: type) -> type:
    """Start with an attention that adds three times as much."""

    class Wrong(attention):
        def forward(self, *arguments, **options) -> Tensor:
            return 3 * super().forward(*arguments, **options)

    return Wrong


def without_final_norm(model: type) -> type:
    """Leave out the norm after a pre-norm stack."""

    class Wrong(model):
        def __init__(self, *arguments, **options) -> None:
            super().__init__(*arguments, **options)
            self.final_norm = None

    return Wrong


def always_pre(model: type) -> type:
    """Build a pre-norm stack whatever is asked for."""

    def make_wrongly(*arguments, norm_placement: str, **options) -> LanguageModel:
        return model(*arguments, norm_placement="pre", **options)

    return make_wrongly


def one_ahead(rate: Callable) -> Callable:
    """Be one step ahead."""
    return lambda step, **options: rate(step + 1, **options)


PERTURBATIONS = {
    "eq-residual-jacobian": Perturbation(
        "the +1 is a number, added to every entry",
        replace=("expected = torch.eye(d) + j", "expected = torch.ones(d, d) + j"),
    ),
    "prp-residual-cancel": Perturbation(
        "the +1 is taken to guarantee the whole gradient",
        replace=("low, high = 1 - stretch, 1 + stretch", "low, high = 1.0, 1 + stretch"),
    ),
    "eq-residual-paths": Perturbation(
        "the first layer is on the left", replace=("path = j @ path", "path = path @ j")
    ),
    "eq-layer-norm": Perturbation("unbiased variance", patch={"lib.norms.layer_norm": unbiased}),
    "prp-layer-norm-invariant": Perturbation(
        "a negative scale is taken to change nothing",
        replace=("math.copysign(1, a) * normalize(x)", "normalize(x)"),
    ),
    "thm-layer-norm-jacobian": Perturbation(
        "the standard deviation is taken for a constant",
        replace=("bracket = bracket - torch.outer(x_hat, x_hat) / d", "pass"),
    ),
    "eq-rms-norm": Perturbation(
        "the mean is taken out first", patch={"lib.norms.rms_norm": centred}
    ),
    "prp-one-pass": Perturbation(
        "both factors from the old mean",
        replace=("away * (feature - mean)", "away * away"),
    ),
    "prp-rms-centred": Perturbation(
        "the mean is not taken out", replace=("by_rms(x @ centre)", "by_rms(x)")
    ),
    "prp-token-alone": Perturbation(
        "LayerNorm takes a text as a whole",
        replace=("return normalize(x)", "return normalize(x.flatten(1)).view_as(x)"),
    ),
    "eq-batch-padding": Perturbation(
        "the real tokens' variance is taken for all",
        replace=("tau * v + tau * (1 - tau) * mu**2", "v"),
    ),
    "eq-pre-norm": Perturbation(
        "the residual takes the normalized x", patch={"lib.block.Block": residual_from_the_norm}
    ),
    "eq-post-norm": Perturbation(
        "the norm is inside the sum", patch={"lib.block.Block": norm_inside_the_sum}
    ),
    "prp-two-jacobians": Perturbation(
        "the sublayer's Jacobian is taken at x, in pre-norm as well",
        replace=("jacobian(f, normalize(x)) @", "jacobian(f, x) @"),
    ),
    "thm-ffn-share": Perturbation(
        "ReLU is taken to keep everything",
        replace=("c = 2 * r / (1 + r) ** 2", "c = 4 * r / (1 + r) ** 2"),
    ),
    "thm-growth": Perturbation(
        "attention adds three times as much", patch={"lib.block.MultiHeadAttention": threefold}
    ),
    "prp-last-norm": Perturbation(
        "the gradient is taken to be divided by the variance",
        replace=("above.norm() / sigma", "above.norm() / sigma**2"),
    ),
    "eq-gradient-pre": Perturbation(
        "no final norm", patch={"lib.transformer.LanguageModel": without_final_norm}
    ),
    "eq-gradient-post": Perturbation(
        "pre-norm in place of post-norm", patch={"lib.transformer.LanguageModel": always_pre}
    ),
    "eq-warmup": Perturbation(
        "the rate is one step ahead", patch={"lib.training.inverse_sqrt_rate": one_ahead}
    ),
    "prp-adam-first": Perturbation(
        "plain gradient descent",
        replace=(
            "torch.optim.Adam([weight], lr=rate, betas=(0.9, 0.98))",
            "torch.optim.SGD([weight], lr=rate)",
        ),
    ),
    "cor-residual-scale": Perturbation(
        "the root is forgotten",
        replace=("(2 * n_layers) ** -0.5", "(2 * n_layers) ** -1.0"),
    ),
}
