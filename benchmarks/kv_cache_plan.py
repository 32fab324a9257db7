"""What :mod:`benchmarks.kv_cache` measures: the models' sizes, and how much on which device."""

from dataclasses import asdict, dataclass, replace

import torch

from lib.kv_cache import kv_cache_bytes
from lib.rope import RotaryPosition
from lib.transformer import LanguageModel

SEED = 10


@dataclass(frozen=True)
class Shape:
    """A language model's sizes; its positions are rotary."""

    name: str
    n_layers: int
    d_model: int
    n_heads: int
    d_ff: int
    vocab_size: int
    n_kv_heads: int = 0  # 0: as many as n_heads
    llama: bool = True  # RMSNorm, SwiGLU and no biases; otherwise LayerNorm, GELU and biases

    @property
    def head_dim(self) -> int:
        return self.d_model // self.n_heads

    @property
    def kv_heads(self) -> int:
        return self.n_kv_heads or self.n_heads

    def cache_bytes(self, length: int, batch: int, dtype: torch.dtype) -> int:
        return kv_cache_bytes(
            length,
            n_layers=self.n_layers,
            n_kv_heads=self.kv_heads,
            head_dim=self.head_dim,
            batch_size=batch,
            dtype=dtype,
        )

    def make(self, device: torch.device, dtype: torch.dtype) -> LanguageModel:
        """A model with random weights, made where it runs."""
        torch.manual_seed(SEED)
        family = {"norm": "rms", "activation": "swiglu", "bias": False} if self.llama else {}
        with torch.device(device):
            model = LanguageModel(
                self.vocab_size,
                self.d_model,
                self.n_layers,
                self.n_heads,
                d_ff=self.d_ff,
                n_kv_heads=self.kv_heads,
                position=RotaryPosition(self.head_dim, layout="half"),
                **family,
            )
        return model.to(dtype).eval().requires_grad_(False)

    def described(self, model: LanguageModel) -> dict:
        """The model's part of a record (:mod:`lib.results`)."""
        return {
            **asdict(self),
            "n_kv_heads": self.kv_heads,
            "head_dim": self.head_dim,
            "n_weights": sum(p.numel() for p in model.blocks.parameters() if p.dim() == 2),
        }


@dataclass(frozen=True)
class Plan:
    """Sizes and amounts of everything that is measured."""

    dtype: str  # of every section that does not name another
    shapes: tuple[Shape, ...]  # tiny, small, large
    lengths: tuple[int, ...]  # tokens t, of the growth
    longer: tuple[int, ...]  # further ones for the largest shape
    step_lengths: tuple[int, ...]
    compile_lengths: tuple[int, ...]
    kv_heads: tuple[int, ...]  # of the roofline and of the longest context
    roofline_dtypes: tuple[str, ...]
    roofline_length: int
    batches: tuple[int, ...]
    prefill_tokens: int  # most tokens, of all texts together, that are prefilled at once
    copy_bytes: int
    product_size: int
    rounds: int
    calls: int  # consecutive calls that make one sample of a step
    new_tokens: int  # generated beside transformers
    exercise_lengths: tuple[int, ...]
    thorough: bool  # whether the exercise makes its own larger measurement


GPU = Plan(
    dtype="bfloat16",
    shapes=(
        Shape("tiny", 4, 128, 2, 352, 1_024),
        Shape("small", 12, 768, 12, 3_072, 50_304, llama=False),  # GPT-2's shapes
        Shape("large", 4, 4096, 32, 11008, 32_000),  # four layers of a 7-billion model
    ),
    lengths=(16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192),
    longer=(16_384,),
    step_lengths=(16, 1024, 8192),
    compile_lengths=(1024,),
    kv_heads=(32, 8, 1),
    roofline_dtypes=("bfloat16", "float32"),
    roofline_length=2048,
    batches=(1, 4, 16, 64),
    prefill_tokens=32_768,
    copy_bytes=2**32,
    product_size=8192,
    rounds=9,
    calls=10,
    new_tokens=48,
    exercise_lengths=(16, 512, 4096),
    thorough=True,
)
CPU = replace(
    GPU,
    dtype="float32",
    shapes=(
        Shape("tiny", 2, 64, 2, 176, 256),
        Shape("small", 4, 256, 4, 1_024, 1_024, llama=False),
        Shape("large", 4, 512, 8, 1408, 1_024),
    ),
    lengths=(16, 64, 256, 512),
    longer=(),
    step_lengths=(16, 512),
    kv_heads=(8, 2, 1),
    roofline_dtypes=("float32",),
    roofline_length=256,
    batches=(1, 8),
    prefill_tokens=512,
    copy_bytes=2**27,
    product_size=1024,
    rounds=5,
    calls=2,
    new_tokens=12,
    exercise_lengths=(16, 256),
    thorough=False,
)
QUICK = replace(
    CPU,
    shapes=(
        Shape("tiny", 1, 16, 2, 24, 32),
        Shape("small", 2, 24, 2, 48, 48, llama=False),
        Shape("large", 2, 32, 4, 48, 64),
    ),
    lengths=(4, 8, 16),
    step_lengths=(9,),
    compile_lengths=(9,),
    kv_heads=(4, 2, 1),
    roofline_length=12,
    batches=(1, 3),
    prefill_tokens=24,
    copy_bytes=2**20,
    product_size=64,
    rounds=2,
    calls=1,
    new_tokens=3,
    exercise_lengths=(3, 8),
)
