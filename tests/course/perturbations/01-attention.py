"""What breaks each claim of chapter 01, and nothing else in it."""

from collections.abc import Callable

from tests.course.execution import Perturbation


def without_the_root(attend: Callable) -> Callable:
    """Divide the scores by d_k in place of its square root, where nothing else is asked for."""

    def attend_wrongly(query, key, value, *, scale=None, **options):
        scale = 1 / query.shape[-1] if scale is None else scale
        return attend(query, key, value, scale=scale, **options)

    return attend_wrongly


def inverted_mask(attend: Callable) -> Callable:
    """Take True for "may not attend"."""

    def attend_wrongly(query, key, value, *, mask=None, **options):
        mask = mask if mask is None else ~mask
        return attend(query, key, value, mask=mask, **options)

    return attend_wrongly


def aligned_top_left(make: Callable) -> Callable:
    """Let the first query see the first key, as torch's is_causal does."""

    def make_wrongly(q_len, k_len, *, offset=None, **options):
        return make(q_len, k_len, offset=0 if offset is None else offset, **options)

    return make_wrongly


ATTENTION = "lib.attention.scaled_dot_product_attention"

PERTURBATIONS = {
    "prp-soft-lookup": Perturbation(
        "the bound counts one other key in place of N - 1",
        replace=("(n - 1) * math.exp(-beta * gap)", "math.exp(-beta * gap)"),
    ),
    "prp-dot-norms": Perturbation(
        "the key is stretched a little less than the bound asks for",
        replace=("1.01 * (query @ near)", "0.99 * (query @ near)"),
    ),
    "eq-attention": Perturbation("scale 1/d_k", patch={ATTENTION: without_the_root}),
    "thm-variance": Perturbation(
        "the variance is said to be d_k",
        replace=("sigma_q**2 * sigma_k**2 * d_k", "d_k"),
    ),
    "cor-scale": Perturbation("scale 1/d_k", replace=("dots / math.sqrt(d_k)", "dots / d_k")),
    "eq-softmax-jacobian": Perturbation(
        "the derivatives across two scores are forgotten",
        replace=("torch.diag(w) - torch.outer(w, w)", "torch.diag(w * (1 - w))"),
    ),
    "eq-query-gradient": Perturbation(
        "the scale is forgotten in the chain rule",
        replace=("jacobian @ k / math.sqrt(d_k)", "jacobian @ k"),
    ),
    "eq-value-gradient": Perturbation(
        "every value is said to learn equally", replace=("w[n] * torch.eye(d_v)", "torch.eye(d_v)")
    ),
    "thm-saturation": Perturbation(
        "the gradient is said to go twice as fast",
        replace=("math.exp(-gap)", "math.exp(-2 * gap)"),
    ),
    "prp-mask": Perturbation("True = may not attend", patch={ATTENTION: inverted_mask}),
    "eq-zeroed-values": Perturbation(
        "zeroed values are said to give the masked output",
        replace=("rho * right", "right"),
    ),
    "eq-causal-mask": Perturbation(
        "aligned top-left", patch={"lib.attention.causal_mask": aligned_top_left}
    ),
    "thm-tied": Perturbation(
        "the query asks in the part of the values too",
        replace=("torch.zeros(5, d_v)", "torch.ones(5, d_v)"),
    ),
    "eq-double-projection": Perturbation(
        "a nonlinearity between the two maps",
        replace=("(tokens @ map_k) @ map_1", "torch.relu(tokens @ map_k) @ map_1"),
    ),
    "prp-relu": Perturbation(
        "a constant is added to the scores of the ReLU",
        replace=("weigh_by_relu(7.0 * scores)", "weigh_by_relu(7.0 + scores)"),
    ),
    "prp-among-values": Perturbation(
        "weights that do not sum to 1",
        replace=("torch.softmax(scores, dim=-1)", "torch.sigmoid(scores)"),
    ),
}
