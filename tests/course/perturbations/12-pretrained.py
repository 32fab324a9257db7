"""What breaks each claim of chapter 12, and nothing else in it."""

from tests.course.execution import Perturbation


def query_for_key(names):
    """Read the keys' weights into the queries, and the other way round."""

    def names_wrongly(n_layers):
        swapped = {"query": "key", "key": "query"}
        result = names(n_layers)
        for ours, theirs in result.items():
            *before, part, kind = theirs.split(".")
            result[ours] = ".".join([*before, swapped.get(part, part), kind])
        return result

    return names_wrongly


def padding_pooled(_):
    """The mean over all places, padding included."""
    return lambda x, mask: x.mean(dim=-2)


def blind_to_padding(encoder):
    """Count positions by the mask, but let every token see the padding."""

    class Blind(encoder):
        def forward(self, tokens, *, mask=None, **options):
            if mask is not None:
                options["positions"] = (mask.cumsum(dim=1) - 1) * mask
            return super().forward(tokens, **options)

    return Blind


def all_rows(scheme):
    """Take the mean of the whole table out of each row."""

    class Centred(scheme):
        def embed(self, x, positions):
            return super().embed(x, positions) - self.table.mean(dim=0)

    return Centred


def always_pre(block):
    """Put the norms before the sublayers, whatever is asked for."""

    class Pre(block):
        def __init__(self, *sizes, **options):
            super().__init__(*sizes, **{**options, "norm_placement": "pre"})

    return Pre


def key_bias_in_values(attention):
    """Add the keys' bias to the values as well."""

    class Both(attention):
        def keys_values(self, context):
            key, value = super().keys_values(context)
            bias = self.w_k.bias.view(self.n_kv_heads, 1, self.head_dim)
            return key, value + bias

    return Both


PERTURBATIONS = {
    "eq-bert-parameters": Perturbation(
        "the biases are forgotten", replace=("+ 9 * d + f", "+ 4 * d")
    ),
    "prp-same-embedding": Perturbation(
        "queries and keys change places", patch={"lib.pretrained.tensor_names": query_for_key}
    ),
    "thm-pooled-cosine": Perturbation(
        "the mean runs over padding too", patch={"lib.pretrained.mean_pool": padding_pooled}
    ),
    "prp-padding-embedding": Perturbation(
        "real tokens see the padding", patch={"lib.pretrained.Encoder": blind_to_padding}
    ),
    "prp-learned-rows": Perturbation(
        "each row takes something from the whole table",
        patch={"lib.position.LearnedPosition": all_rows},
    ),
    "prp-post-norm-output": Perturbation(
        "the norms stand before the sublayers", patch={"lib.block.Block": always_pre}
    ),
    "prp-key-bias": Perturbation(
        "the keys' bias reaches the values",
        patch={"lib.attention.MultiHeadAttention": key_bias_in_values},
    ),
    "prp-fold-bias": Perturbation(
        "the column of ones is a column of zeros",
        replace=("torch.ones(2, 5, 1)", "torch.zeros(2, 5, 1)"),
    ),
}
