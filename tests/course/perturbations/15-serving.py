"""What breaks each claim of chapter 15, and nothing else in it."""

from collections.abc import Callable

import torch

from tests.course.execution import Perturbation


def last_chunk_alone(read: Callable) -> Callable:
    """Read each chunk without the cache of those before."""

    def read_wrongly(model, tokens, state, chunk):
        for piece in tokens.split(chunk, dim=1):
            logits = model(piece, last_only=True)
        return logits[:, -1]

    return read_wrongly


def not_truncated_enough(proceed: Callable) -> Callable:
    """Reuse one token more than the two texts have in common."""

    def proceed_wrongly(model, tokens, state, held):
        wrong = held.clone()
        shorter = min(tokens.shape[1], held.shape[1])
        differs = (tokens[0, :shorter] != held[0, :shorter]).nonzero()[:, 0]
        if len(differs):
            place = int(differs[0])
            wrong[0, place] = tokens[0, place]
        return proceed(model, tokens, state, wrong)

    return proceed_wrongly


def likely_enough(accept: Callable) -> Callable:
    """Accept what is among the three likeliest tokens."""

    def accept_wrongly(logits, draft):
        likely = logits[:-1].topk(3, dim=-1).indices
        accepted = int((likely == draft[:, None]).any(dim=1).cumprod(dim=0).sum())
        return torch.cat([draft[:accepted], logits[accepted].argmax()[None]])

    return accept_wrongly


def replaced_from_the_model(residual: Callable) -> Callable:
    """Draw the replacement from the model's own distribution."""
    return lambda target, draft: target


def each_for_itself(expect: Callable) -> Callable:
    """Forget that a refusal drops the rest of the draft."""
    return lambda rate, n_draft: 1 + rate * n_draft


def whole_square(seconds: Callable) -> Callable:
    """Count the scores that the causal mask hides."""

    def seconds_wrongly(model, machine, pieces):
        wider = [(held + (new - 1) / 2, new) for held, new in pieces]
        return seconds(model, machine, wider)

    return seconds_wrongly


def empty_columns_seen(batch: type) -> type:
    """Let every query see every column."""

    class Wrong(batch):
        def mask(self, q_len):
            return torch.ones_like(super().mask(q_len))

    return Wrong


def always_static(serve: Callable) -> Callable:
    """Keep a batch until its last text has ended."""
    return lambda *arguments, **options: serve(*arguments, **{**options, "policy": "static"})


def never_copied(pool: type) -> type:
    """Write into shared blocks."""

    class Wrong(pool):
        def shared(self, block):
            return False

    return Wrong


def one_step_too_many(quantize: Callable) -> Callable:
    """Divide a group's range by the number of codes, not of steps."""

    def quantize_wrongly(x, bits, *, dim):
        low, high = torch.aminmax(x.float(), dim=dim, keepdim=True)
        scale = (high - low) / 2**bits
        codes = ((x - low) / scale).round().clamp(0, 2**bits - 1)
        return type(quantize(x, bits, dim=dim))(codes.to(torch.uint8), low, scale)

    return quantize_wrongly


def keys_per_token(cache: type) -> type:
    """Group the channels of a key, not the tokens of a channel."""

    class Wrong(cache):
        def _store(self, k, v):
            from lib.caches import dequantize, quantize

            _, values = super()._store(k, v)
            return dequantize(quantize(k, self.bits, dim=3)).to(k), values

    return Wrong


def one_code_per_byte(cache: type) -> type:
    """Spend a byte on a code of 4 bits."""

    class Wrong(cache):
        def __init__(self, *arguments, bits, **options):
            super().__init__(*arguments, bits=8, **options)

    return Wrong


def sinks_hidden(cache: type) -> type:
    """Keep the first tokens, and let no query see them."""

    class Wrong(cache):
        def visible(self, slots, q_slots):
            return q_slots[:, None] - slots <= self.window

    return Wrong


def exchanged(load: Callable) -> Callable:
    """Give each window of a record the loss of the window that has sinks, and the other way."""

    def load_wrongly(name):
        record = load(name)
        for loss in (entry["result"]["loss"] for entry in record["arms"]):
            for cache in [name for name in loss if "+" in name]:
                without = f"window {sum(map(int, cache.removeprefix('window ').split(' + ')))}"
                loss[cache], loss[without] = loss[without], loss[cache]
        return record

    return load_wrongly


PERTURBATIONS = {
    "cor-chunks": Perturbation(
        "each chunk is read alone", patch={"lib.serving.read_in_chunks": last_chunk_alone}
    ),
    "cor-prefix": Perturbation(
        "one token too many is reused", patch={"lib.serving.continue_from": not_truncated_enough}
    ),
    "cor-verify": Perturbation(
        "what is likely is accepted", patch={"lib.speculation.accept_greedy": likely_enough}
    ),
    "thm-speculative": Perturbation(
        "a refused token is drawn again from the model",
        patch={"lib.speculation.residual": replaced_from_the_model},
    ),
    "prp-rate": Perturbation(
        "each token is accepted on its own",
        patch={"lib.speculation.expected_tokens": each_for_itself},
    ),
    "eq-pass-time": Perturbation(
        "hidden scores are counted", patch={"lib.serving.pass_seconds": whole_square}
    ),
    "prp-ragged": Perturbation(
        "empty columns are seen", patch={"lib.serving.RaggedBatch": empty_columns_seen}
    ),
    "prp-static": Perturbation("no text leaves", patch={"lib.serving.serve": always_static}),
    "prp-paged": Perturbation(
        "shared blocks are written", patch={"lib.caches.BlockPool": never_copied}
    ),
    "eq-quantize": Perturbation(
        "a step too many", patch={"lib.caches.quantize": one_step_too_many}
    ),
    "prp-quantized": Perturbation(
        "keys are grouped per token", patch={"lib.caches.QuantizedCache": keys_per_token}
    ),
    "eq-quantized-bytes": Perturbation(
        "a byte for each code", patch={"lib.caches.QuantizedCache": one_code_per_byte}
    ),
    "prp-ring": Perturbation(
        "the sinks are hidden", patch={"lib.caches.WindowCache": sinks_hidden}
    ),
    "obs-compression": Perturbation(
        "windows with and without sinks are exchanged", patch={"lib.results.load": exchanged}
    ),
}
