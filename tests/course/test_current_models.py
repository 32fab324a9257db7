"""The tables "What current models do": every row rests on lines of the package transformers.

A table has one row for each model, with the class or function that does it and its file. Here each
row has its *evidence*: words of the row, and lines that the source of that class has to contain (or
of another one of the same model, which is then named). Line breaks do not count, and `` ... ``
stands for anything. So a row fails when the page says something else, and when a newer package does
something else. Nothing of the package is imported.
"""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from tests.course.claims import chapters

HEADING = "What current models do"
CONTRAST = "gpt2"  # has nothing of what the rows tell; Llama is the contrast for its own row

HALVES = (
    "x1 = x[..., : x.shape[-1] // 2] x2 = x[..., x.shape[-1] // 2 :] "
    "return torch.cat((-x2, x1), dim=-1)"
)

# chapter -> model -> words of its row -> lines of the source, or (class or function, lines)
EVIDENCE = {
    "01-attention": {
        "Qwen3": {
            "on each head": "self.q_norm = Qwen3RMSNorm(self.head_dim,",
            "a learned gain": ("Qwen3RMSNorm", "self.weight = nn.Parameter("),
            "before the rotation": "self.q_norm( ... self.k_norm( ... = apply_rotary_pos_emb(",
        },
        "nanochat": {
            "on each head": ".view(hidden_shape) ... = self.q_norm(query_states)",
            "without a gain": (
                "NanoChatRMSNorm",
                "__init__(self, eps: float = 1e-6): super().__init__() self.eps = eps def _norm",
            ),
            "after the rotation": "= apply_rotary_pos_emb( ... self.q_norm( ... self.k_norm(",
        },
        "Gemma 2": {
            "50 on the scores": "attn_logit_softcapping: float | None = 50.0 ",
            "30 on the output logits": "final_logit_softcapping: float | None = 30.0 ",
            "soft-cap": (
                "eager_attention_forward",
                "attn_weights / softcap attn_weights = torch.tanh(attn_weights) "
                "attn_weights = attn_weights * softcap",
            ),
        },
        "GPT-OSS": {
            "for each head": "self.sinks = nn.Parameter(torch.empty(config.num_attention_heads))",
            "a sink logit": (
                "eager_attention_forward",
                "torch.cat([attn_weights, sinks], dim=-1) ... probs[..., :-1]",
            ),
        },
        "Granite SWA": {
            "a sink logit": (
                "GraniteSWAAttention",
                "self.sinks = nn.Parameter(torch.zeros(config.num_attention_heads))",
            ),
            "the factor": "(lse - module.sinks.view(1, -1, 1)).to(torch.float32).sigmoid()",
            "on the output": "attn_output = attn_output * sink_scale",
        },
        "Qwen3-Next": {
            "on each head": "self.q_norm = Qwen3NextRMSNorm(self.head_dim,",
            "a learned gain": ("Qwen3NextRMSNorm", "self.weight = nn.Parameter("),
            "before the rotation": "self.q_norm( ... self.k_norm( ... = apply_rotary_pos_emb(",
            "a gate on the output": "attn_output = attn_output * torch.sigmoid(gate)",
        },
    },
    "02-multi-head": {
        "GPT-2": {
            "12, ": "n_head: int = 12 ",
            "each with its own keys and values": (
                "GPT2Attention",
                "self.c_attn = Conv1D(3 * self.embed_dim, self.embed_dim) ... "
                "self.c_attn(hidden_states).split(self.split_size, dim=2)",
            ),
        },
        "Llama": {
            "32, ": "num_attention_heads: int = 32 ",
            "unless the configuration has another number": (
                "num_key_value_heads: int | None = None ... if self.num_key_value_heads is None: "
                "self.num_key_value_heads = self.num_attention_heads"
            ),
        },
        "Mistral": {
            "32, ": "num_attention_heads: int = 32 ",
            "8 KV heads": "num_key_value_heads: int = 8 ",
        },
        "GPT-OSS": {
            "64, ": "num_attention_heads: int = 64 ",
            "8 KV heads": "num_key_value_heads: int = 8 ",
            "width 64": "head_dim: int = 64 ",
            "2880": "hidden_size: int = 2880 ",
        },
        "Qwen3-Next": {
            "16, ": "num_attention_heads: int = 16 ",
            "2 KV heads": "num_key_value_heads: int = 2 ",
        },
        "GPT BigCode": {
            "12, ": ("GPTBigCodeConfig", "n_head: int = 12 ... multi_query: bool = True"),
            "by default": ("GPTBigCodeConfig", "multi_query: bool = True"),
            "one KV head for all": "self.kv_heads = 1 if self.multi_query else self.num_heads",
        },
    },
    "03-sinusoidal": {
        "BERT": {
            "a learned table": (
                "self.position_embeddings = nn.Embedding(config.max_position_embeddings, "
                "config.hidden_size) ... embeddings = embeddings + position_embeddings"
            ),
            "512 rows": ("BertConfig", "max_position_embeddings: int = 512 "),
        },
        "GPT-2": {
            "a learned table": (
                "self.wpe = nn.Embedding(config.max_position_embeddings, self.embed_dim) ... "
                "inputs_embeds + position_embeds"
            ),
            "1024 rows": (
                "GPT2Config",
                '"max_position_embeddings": "n_positions" ... n_positions: int = 1024 ',
            ),
        },
        "ViT, for images": {
            "a learned vector for each patch": (
                "self.position_embeddings = nn.Parameter(torch.randn(1, num_patches + 1, ... "
                "embeddings = embeddings + self.position_embeddings"
            ),
            "can be interpolated": (
                "patch_pos_embed = nn.functional.interpolate( patch_pos_embed, ... "
                "if interpolate_pos_encoding: embeddings = embeddings + "
                "self.interpolate_pos_encoding("
            ),
        },
        "Whisper, from speech to text": {
            "in the encoder sinusoids": (
                "WhisperPreTrainedModel",
                "isinstance(module, WhisperEncoder): init.copy_(module.embed_positions.weight, "
                "sinusoids(*module.embed_positions.weight.shape))",
            ),
            "not trained": (
                "self.embed_positions.requires_grad_(False) ... "
                "inputs_embeds + self.embed_positions(all_positions)"
            ),
            "in the decoder a learned table": (
                "WhisperDecoder",
                "self.embed_positions = WhisperPositionalEmbedding(self.max_target_positions, ... "
                "inputs_embeds + positions.to(",
            ),
            "448 rows": ("WhisperConfig", "max_target_positions: int = 448 "),
        },
        "M2M-100, for translation": {
            "sinusoids": (
                "torch.cat([torch.sin(emb), torch.cos(emb)], dim=1).view(num_embeddings, -1)"
            ),
            "computed anew if the text is longer": (
                "max_pos > self.weights.size(0): self.make_weights("
            ),
        },
    },
    "04-relative": {
        "T5": {
            "a learned number for each head": (
                "nn.Embedding(self.relative_attention_num_buckets, self.n_heads)"
            ),
            "32 buckets": ("T5Config", "relative_attention_num_buckets: int = 32 "),
            "the first layer has the table": (
                "T5Stack",
                "T5Block(config, has_relative_attention_bias=bool(i == 0), layer_idx=i)",
            ),
            "all layers use it": (
                "T5Stack",
                "hidden_states, self_attention_position_bias, cross_attention_position_bias = "
                "layer_module( ... position_bias, ... "
                "position_bias = self_attention_position_bias",
            ),
        },
        "DeBERTa V2": {
            "query · vector of the offset": (
                'if "c2p" in self.pos_att_type: ... '
                "c2p_att = torch.bmm(query_layer, pos_key_layer.transpose(-1, -2)) ... "
                "score += c2p_att"
            ),
            "key · vector of the offset": (
                'if "p2c" in self.pos_att_type: ... '
                "p2c_att = torch.bmm(key_layer, pos_query_layer.transpose(-1, -2)) ... "
                "score += p2c_att"
            ),
            "divided by $\\sqrt{3 d_k}$": (
                'scale_factor = 1 if "c2p" in self.pos_att_type: scale_factor += 1 if "p2c" in '
                "self.pos_att_type: scale_factor += 1 scale = scaled_size_sqrt(query_layer, "
                "scale_factor)"
            ),
        },
        "XLNet": {
            "Transformer-XL's terms": (
                'ac = torch.einsum("ibnd,jbnd->bnij", q_head + self.r_w_bias, k_head_h) ... '
                'bd = torch.einsum("ibnd,jbnd->bnij", q_head + self.r_r_bias, k_head_r)'
            ),
            "each head has two learned vectors": (
                "self.r_r_bias = nn.Parameter(torch.FloatTensor(self.n_head, self.d_head)) ... "
                "self.r_w_bias = nn.Parameter(torch.FloatTensor(self.n_head, self.d_head))"
            ),
        },
        "SeamlessM4T v2, for speech": {
            "query · learned vector of the offset": (
                "self.distance_embedding = nn.Embedding(num_positions, self.head_size) ... "
                'torch.einsum("bhld,lrd->bhlr", query, positional_embedding)'
            ),
            "clipped": (
                "torch.clamp(distance, -self.left_max_position_embeddings, "
                "self.right_max_position_embeddings)"
            ),
            "64 tokens back": (
                "SeamlessM4Tv2Config",
                'position_embeddings_type: str = "relative_key" ... '
                "left_max_position_embeddings: int = 64 ",
            ),
            "8 ahead": ("SeamlessM4Tv2Config", "right_max_position_embeddings: int = 8 "),
        },
    },
    "05-rope": {
        "GPT-J": {
            "64 components": "rotary_dim: int = 64 ",
            "interleaved": (
                "rotate_every_two",
                "x1 = x[:, :, :, ::2] x2 = x[:, :, :, 1::2] x = torch.stack((-x2, x1), dim=-1)",
            ),
        },
        "GPT-NeoX": {
            "the first quarter": '"partial_rotary_factor", kwargs.pop("rotary_pct", 0.25)',
            "of each head": (
                "apply_rotary_pos_emb",
                "q_rot, q_pass = q[..., :rotary_dim], q[..., rotary_dim:] ... "
                "torch.cat([q_embed, q_pass], dim=-1)",
            ),
            "; half": ("rotate_half", HALVES),
        },
        "GLM-4": {
            "one half of each head": 'kwargs.setdefault("partial_rotary_factor", 0.5)',
            "interleaved": (
                "rotate_half",
                "x1 = x[..., 0::2] x2 = x[..., 1::2] return torch.stack((-x2, x1), dim=-1)",
            ),
        },
        "Llama": {
            "the whole head": (
                "apply_rotary_pos_emb",
                "q_embed = (q * cos) + (rotate_half(q) * sin)",
            ),
            "; half": HALVES,
        },
        "Llama 3.1": {
            "$s = 8$": 'rope_parameters_dict["factor"] # `8` in the original',
            "$\\alpha = 1$": 'rope_parameters_dict["low_freq_factor"] # `1` in the original',
            "$\\beta = 4$": 'rope_parameters_dict["high_freq_factor"] # `4` in the original',
            "$L = 8192$": '["original_max_position_embeddings"] # `8192` in the original',
            "{eq}`eq-rope-llama3`": (
                "wavelen = 2 * math.pi / inv_freq ... = (old_context_len / wavelen - "
                "low_freq_factor) / (high_freq_factor - low_freq_factor) smoothed_inv_freq "
                "= (1 - smooth_factor) * inv_freq_llama / factor + smooth_factor * inv_freq_llama"
            ),
        },
        "Cohere": {
            "interleaved": (
                "x1 = x[..., ::2] x2 = x[..., 1::2] rot_x = torch.stack([-x2, x1], dim=-1)"
            ),
        },
        "DeepSeek-V3": {
            "reads the interleaved layout": "q1, q2 = q[..., 0::2], q[..., 1::2]",
            "writes the half layout": "torch.cat([q1 * cos - q2 * sin, q2 * cos + q1 * sin],",
        },
        "SmolLM3": {
            "every fourth layer": (
                "no_rope_layer_interval: int = 4 ... "
                "int((layer_idx + 1) % self.no_rope_layer_interval != 0)"
            ),
            "no rotation": ("SmolLM3Attention", "if self.use_rope: ... = apply_rotary_pos_emb("),
        },
        "Cohere 2": {
            "rotates in the layers with a window": (
                "if self.sliding_window is not None: query_states, key_states = apply_rotary"
            ),
            "every fourth layer has no window": (
                "Cohere2Config",
                '"sliding_window_pattern", 4) ... "sliding_attention" if bool((i + 1) % '
                '_sliding_window_pattern) else "full_attention"',
            ),
        },
        "Qwen2-VL": {
            "half of the pairs": "spatial_dim = dim // 2 ... / spatial_dim))",
            "the row": (
                "freq_h, freq_w = freq[:, 0], freq[:, 1] freq_hw = torch.cat([freq_h, freq_w], "
                "dim=-1)"
            ),
        },
    },
    "06-alibi": {
        "BLOOM": {
            "$\\mu_h n$": (
                "arange_tensor = ((attention_mask.cumsum(dim=-1) - 1) * attention_mask) ... "
                "alibi = slopes[..., None] * arange_tensor"
            ),
            "converted to the model's number format": (
                "BloomModel",
                "self.build_alibi_tensor(attention_mask, self.num_heads, "
                "dtype=hidden_states.dtype)",
            ),
            "official slopes": (
                "_get_alibi_slopes",
                "torch.arange(1, 1 + 2 * num_remaining_heads, 2, ... torch.cat([slopes,",
            ),
        },
        "MPT": {
            "by default": ("MptAttentionConfig", "alibi: bool = True"),
            "counted back from the last key": (
                "torch.arange(1 - sequence_length, 1, ... alibi = alibi * slopes"
            ),
            "official slopes": "torch.concat([slopes[:, 1::2, ...], slopes[:, ::2, ...]], dim=1)",
        },
        "Falcon": {
            "as an option": ("FalconConfig", "alibi: bool | None = False"),
            "by default nothing: it rotates": (
                "FalconConfig",
                "def rotary(self): return not self.alibi",
            ),
            "$\\mu_h n$ in bfloat16": "slopes[..., None].bfloat16() * arange_tensor",
            "added **before** the division": (
                "FalconAttention",
                "attention_scores + alibi.view( ... attention_logits *= self.inv_norm_factor",
            ),
            "in effect $\\mu_h/\\sqrt{d_k}$": (
                "FalconModel",
                "alibi / math.sqrt(self.config.hidden_size // self.num_heads)",
            ),
            "official slopes": (
                "torch.arange(1, 1 + 2 * num_remaining_heads, 2, ... torch.cat([slopes,"
            ),
        },
        "T5": {
            "32 buckets": "relative_attention_num_buckets: int = 32 ",
            "distance 128": "relative_attention_max_distance: int = 128 ",
            "a learned number for each head": (
                "T5Attention",
                "nn.Embedding(self.relative_attention_num_buckets, self.n_heads)",
            ),
        },
    },
    "07-extrapolation": {
        "Llama 3.1": {
            "8192 originally": '["original_max_position_embeddings"] # `8192` in the original',
            "divided by 8": (
                'rope_parameters_dict["factor"] # `8` in the original ... '
                "torch.where(wavelen > low_freq_wavelen, inv_freq / factor, inv_freq)"
            ),
            "fast ones stay": "is_medium_freq = ~(wavelen < high_freq_wavelen) * ~(wavelen > low_",
        },
        "GPT-OSS": {
            "4096 originally": '"original_max_position_embeddings": 4096,',
            "131,072": "max_position_embeddings: int = 131072 ",
            "YaRN with factor 32": '"rope_type": "yarn", "factor": 32.0,',
            "every other layer": ('"sliding_attention" if bool((i + 1) % 2) else "full_attention"'),
            "128 tokens": "sliding_window: int | None = 128 ",
        },
        "Ministral 3": {
            "16,384 originally": '"original_max_position_embeddings": 16384,',
            "262,144": "max_position_embeddings: int = 262144 ",
            "YaRN with factor 16": '"type": "yarn", "rope_theta": 1000000.0, "factor": 16.0,',
        },
        "Gemma 3": {
            "131,072": "max_position_embeddings: int = 131_072 ",
            "five layers of six": (
                '"sliding_window_pattern", 6) ... "sliding_attention" if bool((i + 1) % '
                'self._sliding_window_pattern) else "full_attention"'
            ),
            "4096 tokens": "sliding_window: int | None = 4096 ",
            "the base 10,000;": (
                'default_theta = {"global": 1_000_000.0, "local": 10_000.0} ... '
                'self.rope_parameters["sliding_attention"].setdefault( "rope_theta", '
                'kwargs.pop("rope_local_base_freq", self.default_theta["local"])'
            ),
            "the base 1,000,000": (
                'self.rope_parameters["full_attention"].setdefault( "rope_theta", '
                'kwargs.pop("rope_theta", self.default_theta["global"])'
            ),
        },
        "Mistral": {
            "131,072": "max_position_embeddings: int = 4096 * 32 ",
            "4096 tokens": "sliding_window: int | None = 4096 ",
            "in every layer": (
                "MistralModel",
                "mask_function = create_causal_mask if self.config.sliding_window is None else "
                "create_sliding_window_causal_mask causal_mask = mask_function( ... "
                "for decoder_layer in self.layers[: self.config.num_hidden_layers]: hidden_states "
                "= decoder_layer( hidden_states, attention_mask=causal_mask,",
            ),
        },
    },
    "08-norms": {
        "Llama": {
            "an RMS norm": "self.input_layernorm = LlamaRMSNorm(",
            "on the input of each sublayer": (
                "residual = hidden_states hidden_states = self.input_layernorm(hidden_states) ... "
                "residual = hidden_states hidden_states = self.post_attention_layernorm("
            ),
        },
        "OLMo 2": {
            "an RMS norm": "self.post_attention_layernorm = Olmo2RMSNorm(",
            "on the output of each sublayer, before the sum": (
                "self.post_attention_layernorm(hidden_states) hidden_states = residual + "
                "hidden_states ... self.post_feedforward_layernorm(hidden_states) hidden_states = "
                "residual + hidden_states"
            ),
        },
        "Gemma 2": {
            "both": (
                "residual = hidden_states hidden_states = self.input_layernorm(hidden_states) ... "
                "self.post_attention_layernorm(hidden_states) hidden_states = residual + "
                "hidden_states residual = hidden_states hidden_states = "
                "self.pre_feedforward_layernorm(hidden_states) ... "
                "self.post_feedforward_layernorm(hidden_states) hidden_states = residual + "
            ),
        },
        "GPT-2": {
            "$W_o$ and $W_2$": "if isinstance(module, (GPT2Attention, GPT2MLP)): ... c_proj.weight",
            "$\\sqrt{2L}$": "self.config.initializer_range / math.sqrt(2 * self.config.n_layer)",
        },
        "ModernBERT": {
            "the same": (
                '"out": self.config.initializer_range / math.sqrt(2.0 * '
                "self.config.num_hidden_layers) ... isinstance(module, ModernBertMLP): ... "
                'init_weight(module.Wo, stds["out"]) ... isinstance(module, ModernBertAttention): '
                '... init_weight(module.Wo, stds["out"])'
            ),
        },
        "nanochat": {
            "the same, for $W_o$ alone": (
                "isinstance(module, NanoChatAttention): init.normal_( module.o_proj.weight, "
                "mean=0.0, std=self.config.initializer_range / math.sqrt(2 * "
                "self.config.num_hidden_layers), )"
            ),
        },
        "Granite": {
            "what a sublayer adds": (
                "hidden_states = residual + hidden_states * self.residual_multiplier ... "
                "hidden_states = residual + hidden_states * self.residual_multiplier"
            ),
            "1 by default": ("GraniteConfig", "residual_multiplier: float | int = 1.0 "),
        },
    },
    "09-transformer": {
        "t5": {
            "encoder and decoder": ("T5Config", "is_encoder_decoder: bool = True"),
            "bias by distance": (
                "T5Attention",
                "self.relative_attention_bias = nn.Embedding(self.relative_attention_num_buckets,",
            ),
            "RMS norm": ("T5LayerNorm", "hidden_states.to(torch.float32).pow(2).mean(-1,"),
            "before": ("T5LayerFF", "= self.layer_norm(hidden_states) ... = self.DenseReluDense("),
            "ReLU": ("T5Config", 'feed_forward_proj: str = "relu"'),
            "tied to the embedding": ("T5Config", "self.tie_word_embeddings = True"),
        },
        "gpt2": {
            "learned, added": (
                "GPT2Model",
                "self.wpe = nn.Embedding(config.max_position_embeddings, ... "
                "inputs_embeds + position_embeds",
            ),
            "layer norm": "self.ln_1 = nn.LayerNorm(",
            "before": "= self.ln_1(hidden_states) ... = self.attn(",
            "GELU": ("GPT2Config", 'activation_function: str = "gelu_new"'),
            "tied to the embedding": ("GPT2Config", "tie_word_embeddings: bool = True"),
        },
        "llama": {
            "rotary": ("LlamaAttention", "apply_rotary_pos_emb(query_states, key_states, cos, sin"),
            "RMS norm": "self.input_layernorm = LlamaRMSNorm(",
            "before": "= self.input_layernorm(hidden_states) ... = self.self_attn(",
            "SwiGLU": ("LlamaMLP", "self.act_fn(self.gate_proj(x)) * self.up_proj(x)"),
            "its own": ("LlamaConfig", "tie_word_embeddings: bool = False"),
        },
        "olmo2": {
            "rotary": ("Olmo2Attention", "apply_rotary_pos_emb(query_states, key_states, cos, sin"),
            "RMS norm": "self.post_attention_layernorm = Olmo2RMSNorm(",
            "on each sublayer's output": "= self.mlp(hidden_states) hidden_states = "
            "self.post_feedforward_layernorm(hidden_states) hidden_states = residual +",
            "SwiGLU": ("Olmo2MLP", "self.act_fn(self.gate_proj(x)) * self.up_proj(x)"),
            "its own": ("Olmo2Config", "tie_word_embeddings: bool = False"),
        },
        "gemma2": {
            "rotary": (
                "Gemma2Attention",
                "apply_rotary_pos_emb(query_states, key_states, cos, sin",
            ),
            "RMS norm": "self.input_layernorm = Gemma2RMSNorm(",
            "before and on the output": "= self.pre_feedforward_layernorm(hidden_states) "
            "hidden_states = self.mlp(hidden_states) hidden_states = "
            "self.post_feedforward_layernorm(hidden_states)",
            "GELU with a gate": ("Gemma2Config", 'hidden_activation: str = "gelu_pytorch_tanh"'),
            "tied to the embedding": (
                "Gemma2Config",
                "tie_word_embeddings: bool = True rope_parameters",
            ),
        },
    },
    "11-efficient": {
        "MiniMax": {
            "a fixed discount": (
                "ratio = torch.exp(-self.slope_rate) ... ratio * attn_weights_inter + "
                "current_attn_weights_inter"
            ),
            "for each head, by ALiBi's slopes": (
                "base = 1 / (2 ** (8 / self.num_attention_heads)) ... base**exponent"
            ),
            "a factor for the layer": (
                "factor = 1 - self.layer_idx / (self.num_hidden_layers - 1 + 1e-5) + 1e-5"
            ),
            "every other layer": (
                "MiniMaxConfig",
                '"full_attention" if bool((i + 1) % 2) else "linear_attention"',
            ),
        },
        "Mamba 2": {
            "a discount by token": "dA = torch.exp(dt.float() * A.float())",
            "the new pair is added": "ssm_states = state * dA + dBx",
        },
        "Qwen3-Next": {
            "the gated delta rule": (
                "last_recurrent_state * decay_t ... delta = (v_t - kv_mem) * beta_t "
                "last_recurrent_state = last_recurrent_state + k_t.unsqueeze(-1) * delta"
            ),
            "keys of length 1": (
                "Qwen3NextGatedDeltaNet",
                "torch_recurrent_gated_delta_rule( ... use_qk_l2norm_in_kernel=True",
            ),
            "every fourth layer has a softmax": (
                "Qwen3NextConfig",
                '"full_attention_interval", 4) ... "linear_attention" if bool((i + 1) % '
                'interval_pattern) else "full_attention"',
            ),
        },
        "Kimi Linear": {
            "the same rule": (
                "last_recurrent_state * g_i ... delta = (v_i - kv_mem) * b_i last_recurrent_state "
                "= last_recurrent_state + k_i.unsqueeze(-1) * delta"
            ),
            "a discount for each component of the key": "g_i = g[:, i][..., None].exp()",
            "every fourth layer has a softmax": (
                "KimiLinearConfig",
                '"full_attention" if i and i % 4 == 0 else "linear_attention"',
            ),
        },
    },
    "12-pretrained": {
        "bert": {
            "learned rows": (
                "BertEmbeddings",
                "self.position_embeddings = nn.Embedding(config.max_position_embeddings,",
            ),
            "512 tokens": ("BertConfig", "max_position_embeddings: int = 512 "),
            "LayerNorm, post-norm": (
                "BertSelfOutput",
                "nn.LayerNorm( ... hidden_states = self.LayerNorm(hidden_states + input_tensor)",
            ),
            "all three": (
                "BertSelfAttention",
                "self.query = nn.Linear(config.hidden_size, self.all_head_size) self.key = "
                "nn.Linear(config.hidden_size, self.all_head_size) self.value = "
                "nn.Linear(config.hidden_size, self.all_head_size)",
            ),
            "GELU": ("BertConfig", 'hidden_act: str = "gelu" '),
            "all tokens": (
                "BertModel",
                "if self.config.is_decoder: attention_mask = create_causal_mask( ... else: "
                "attention_mask = create_bidirectional_mask(",
            ),
        },
        "modernbert": {
            "RoPE": (
                "ModernBertAttention",
                "apply_rotary_pos_emb(query_states, key_states, cos, sin",
            ),
            "8192 tokens": ("ModernBertConfig", "max_position_embeddings: int = 8192 "),
            "LayerNorm, pre-norm": (
                "self.mlp_norm = nn.LayerNorm( ... self.attn( self.attn_norm(hidden_states), ... "
                "hidden_states + self.mlp(self.mlp_norm(hidden_states))"
            ),
            "none": ("ModernBertConfig", "attention_bias: bool = False "),
            "GeGLU": ("ModernBertMLP", "self.Wo(self.drop(self.act(input) * gate))"),
            "all tokens in every third layer": (
                "ModernBertConfig",
                '"global_attn_every_n_layers", 3) ... "sliding_attention" if bool(i % '
                'global_attn_every_n_layers) else "full_attention"',
            ),
            "a window of 128": ("ModernBertConfig", "local_attention: int = 128 "),
        },
        "llama": {
            "RoPE": ("LlamaAttention", "apply_rotary_pos_emb(query_states, key_states, cos, sin"),
            "RMSNorm, pre-norm": (
                "self.input_layernorm = LlamaRMSNorm( ... = self.input_layernorm(hidden_states) "
                "... = self.self_attn("
            ),
            "none": ("LlamaConfig", "attention_bias: bool = False "),
            "SwiGLU": ("LlamaMLP", "self.act_fn(self.gate_proj(x)) * self.up_proj(x)"),
            "itself and earlier tokens": ("LlamaAttention", "self.is_causal = True self.q_proj"),
        },
    },
    "13-language-model": {
        "llama": {
            "an RMS norm before each sublayer": (
                "LlamaRMSNorm( ... = self.input_layernorm(hidden_states) ... = self.self_attn( ... "
                "= self.post_attention_layernorm(hidden_states) hidden_states = self.mlp("
            ),
            "rotated queries and keys": (
                "LlamaAttention",
                "apply_rotary_pos_emb(query_states, key_states, cos, sin)",
            ),
            "SwiGLU": ("LlamaMLP", "self.act_fn(self.gate_proj(x)) * self.up_proj(x)"),
            "no biases": (
                "LlamaConfig",
                "attention_bias: bool = False ... mlp_bias: bool = False ",
            ),
        },
        "qwen2": {
            "a bias for queries, keys and values": (
                "self.q_proj = nn.Linear(config.hidden_size, config.num_attention_heads * "
                "self.head_dim, bias=True) self.k_proj = nn.Linear(config.hidden_size, "
                "config.num_key_value_heads * self.head_dim, bias=True) self.v_proj = nn.Linear("
                "config.hidden_size, config.num_key_value_heads * self.head_dim, bias=True)"
            ),
            "none for the output": (
                "self.o_proj = nn.Linear(config.num_attention_heads * self.head_dim, "
                "config.hidden_size, bias=False)"
            ),
        },
        "mistral": {
            "4096 tokens": ("MistralConfig", "sliding_window: int | None = 4096 "),
            "in every layer": (
                "mask_function = create_causal_mask if self.config.sliding_window is None else "
                "create_sliding_window_causal_mask causal_mask = mask_function( ... "
                "for decoder_layer in self.layers[: self.config.num_hidden_layers]: hidden_states "
                "= decoder_layer( hidden_states, attention_mask=causal_mask,"
            ),
        },
        "phi3": {
            "queries, keys and values together": (
                "op_size = config.num_attention_heads * self.head_dim + 2 * "
                "(config.num_key_value_heads * self.head_dim) ... self.qkv_proj = "
                "nn.Linear(config.hidden_size, op_size, bias=False)"
            ),
            "the two parts of SwiGLU": (
                "Phi3MLP",
                "self.gate_up_proj(hidden_states) gate, up_states = up_states.chunk(2, dim=-1) "
                "up_states = up_states * self.activation_fn(gate)",
            ),
        },
        "smollm3": {
            "no rotation": (
                "self.use_rope = config.no_rope_layers[layer_idx] ... if self.use_rope: ... "
                "= apply_rotary_pos_emb("
            ),
            "every fourth layer": (
                "SmolLM3Config",
                "no_rope_layer_interval: int = 4 ... "
                "int((layer_idx + 1) % self.no_rope_layer_interval != 0)",
            ),
        },
        "olmo2": {
            "the norm on the output of each sublayer": (
                "= self.self_attn( ... = self.post_attention_layernorm(hidden_states) "
                "hidden_states = residual + hidden_states ... = self.mlp(hidden_states) "
                "hidden_states = self.post_feedforward_layernorm(hidden_states) hidden_states = "
                "residual + hidden_states"
            ),
            "on all queries": (
                "Olmo2Attention",
                "Olmo2RMSNorm(config.num_attention_heads * self.head_dim, ... "
                "query_states = self.q_norm(self.q_proj(hidden_states))",
            ),
            "on all its keys": (
                "Olmo2Attention",
                "Olmo2RMSNorm(config.num_key_value_heads * self.head_dim, ... "
                "key_states = self.k_norm(self.k_proj(hidden_states))",
            ),
        },
    },
    "14-modern-attention": {
        "qwen3": {
            "QK-norm on each head": "self.q_norm = Qwen3RMSNorm(self.head_dim,",
            "before the rotation": "self.q_norm( ... self.k_norm( ... = apply_rotary_pos_emb(",
        },
        "gemma3": {
            "the same": (
                "self.q_norm = Gemma3RMSNorm(dim=config.head_dim, ... "
                "self.q_norm( ... self.k_norm( ... = apply_rotary_pos_emb("
            ),
            "no soft-cap by default": (
                "Gemma3TextConfig",
                "attn_logit_softcapping: float | None = None",
            ),
        },
        "olmo2": {
            "over all heads together": (
                "self.q_norm = Olmo2RMSNorm(config.num_attention_heads * self.head_dim,"
            ),
            "before the rotation": "self.q_norm( ... self.k_norm( ... = apply_rotary_pos_emb(",
        },
        "hunyuan_v1_dense": {
            "QK-norm on each head": "self.query_layernorm = HunYuanDenseV1RMSNorm(self.head_dim,",
            "*after* the rotation": (
                "= apply_rotary_pos_emb( ... self.query_layernorm( ... self.key_layernorm("
            ),
        },
        "gemma2": {
            "by default 50 on the scores": (
                "Gemma2Config",
                "attn_logit_softcapping: float | None = 50.0 ",
            ),
            "30 on the output logits": (
                "Gemma2Config",
                "final_logit_softcapping: float | None = 30.0 ",
            ),
            "soft-cap": "softcap=self.attn_logit_softcapping",
            "`_supports_sdpa = False`": ("Gemma2PreTrainedModel", "_supports_sdpa = False"),
        },
        "gpt_oss": {
            "a sink per head": "self.sinks = nn.Parameter(torch.empty(config.num_attention_heads))",
            "128 tokens": ("GptOssConfig", "sliding_window: int | None = 128 "),
            "every other layer": (
                "GptOssConfig",
                '"sliding_attention" if bool((i + 1) % 2) else "full_attention"',
            ),
        },
        "qwen3_next": {
            "a gate on the output": "attn_output = attn_output * torch.sigmoid(gate)",
            "QK-norm": "self.q_norm = Qwen3NextRMSNorm(self.head_dim,",
            "three layers of four have linear attention": (
                "Qwen3NextConfig",
                '"full_attention_interval", 4) ... "linear_attention" if bool((i + 1) % interval',
            ),
        },
        "deepseek_v3": {
            "caches the latent": "kv_nope, k_rot = past_key_values.update(kv_nope, k_rot,",
            "expands it": "key_states, value_states = self.expand_kv(kv_nope, k_rot)",
        },
    },
}
ROWS = [(slug, model) for slug, models_of in EVIDENCE.items() for model in models_of]
PIECES = [(slug, model, words) for slug, model in ROWS for words in EVIDENCE[slug][model]]


def section(text: str) -> str:
    """The section with the table, without its heading; empty if there is none."""
    _, heading, rest = text.partition(f"\n## {HEADING}\n")
    return rest.split("\n## ")[0] if heading else ""


def table(text: str) -> dict[str, list[str]]:
    """Its rows by model: all cells of each, without the header."""
    lines = re.findall(r"^\| (.+) \|$", section(text), flags=re.MULTILINE)
    rows = [line.split(" | ") for line in lines[2:]]  # a header, and the line below it
    return {cells[0].strip("`"): cells for cells in rows}


TABLES = {chapter.slug: table(chapter.text) for chapter in chapters() if section(chapter.text)}


def place(model: str, cells: list[str]) -> tuple[str, str]:
    """The class or function that a row names, and its file.

    A row either has both in its last cell, as `LlamaConfig`, `configuration_llama.py`, or it
    begins with the model's folder and the class.
    """
    named = re.fullmatch(r"`(\w+)`, `(\w+\.py)`", cells[-1])
    return named.groups() if named else (re.search(r"`(\w+)`", cells[1])[1], f"modeling_{model}.py")


@cache
def definitions(models: Path, file: str) -> dict[str, str]:
    """The source of every class and function of a file, which belongs to a model or to all."""
    path = models / folder(file) / file
    text = (path if path.is_file() else models.parent / file).read_text(encoding="utf-8")
    nodes = [node for node in ast.parse(text).body if hasattr(node, "name")]
    return {node.name: ast.get_source_segment(text, node) for node in nodes}


def folder(file: str) -> str:
    return file.partition("_")[2].removesuffix(".py")


def model_sources(models: Path, name: str) -> dict[str, str]:
    """The source of every class and function of a model: of its code and its configuration."""
    files = [f"{kind}_{name}.py" for kind in ("modeling", "configuration")]
    existing = [file for file in files if (models / name / file).is_file()] or files[:1]
    return {key: text for file in existing for key, text in definitions(models, file).items()}


def contains(source: str, lines: str) -> bool:
    """Whether these lines are in a source, in this order."""
    parts = map(re.escape, lines.split(" ... "))
    return bool(re.search(".*".join(parts), " ".join(source.split())))


def problem(words: str, evidence, cells: list[str], main: str, sources: dict[str, str]) -> str:
    """What is wrong with one piece of evidence; empty if nothing is."""
    name, lines = (main, evidence) if isinstance(evidence, str) else evidence
    if not any(words in cell for cell in cells[1:]):
        return f"the row does not say {words!r}"
    if not contains(sources[name], lines):
        return f"{name} does not have what is meant by {words!r}: {lines}"
    return ""


def test_every_table_has_its_evidence():
    assert {slug: list(rows) for slug, rows in TABLES.items()} == {
        slug: list(rows) for slug, rows in EVIDENCE.items()
    }


@pytest.mark.parametrize(("slug", "model"), ROWS)
def test_row(models, slug, model):
    cells = TABLES[slug][model]
    main, file = place(model, cells)
    assert main in definitions(models, file)
    sources = model_sources(models, folder(file))
    problems = [problem(*each, cells, main, sources) for each in EVIDENCE[slug][model].items()]
    assert [each for each in problems if each] == []


def test_biases_of_the_package(models):
    """Chapter 06: three models know linear biases, none has KERPLE or FIRE."""
    code = {path.parent.name: path.read_text("utf-8") for path in models.glob("*/modeling_*.py")}
    assert len(code) > 100
    assert {name for name, text in code.items() if "alibi" in text} == {"bloom", "falcon", "mpt"}
    assert not [name for name, text in code.items() if re.search(r"\b(?i:kerple)|\bFIRE\b", text)]


def test_sinusoids_of_the_package(models):
    """Chapter 03: all sines come before all cosines, and the slowest frequency is 1/10000."""
    evidence = {
        "whisper": (
            "max_timescale: float = 10000 ... math.log(max_timescale) / (channels // 2 - 1) ... "
            "torch.cat([scaled_time.sin(), scaled_time.cos()], dim=1)"
        ),
        "m2m_100": (
            "emb = math.log(10000) / (half_dim - 1) ... "
            "torch.cat([torch.sin(emb), torch.cos(emb)], dim=1)"
        ),
    }
    for name, lines in evidence.items():
        source = "\n".join(model_sources(models, name).values())
        assert contains(source, lines), name
        assert not contains(source, lines.replace(" - 1)", ")")), name


def test_linear_models_of_the_package(models):
    """Chapter 11: their features are a SiLU, and all but Mamba 2 have layers with a softmax."""
    names = ["minimax", "mamba2", "qwen3_next", "kimi_linear"]
    source = {name: "\n".join(model_sources(models, name).values()) for name in names}
    assert [name for name in names if "softmax(" not in source[name]] == ["mamba2"]
    assert all(contains(text, 'hidden_act: str = "silu"') for text in source.values())
    assert contains(source["minimax"], "qkv_states = self.act_fn(self.qkv_proj(hidden_states))")
    for name in names[1:]:
        assert contains(source[name], "self.activation = config.hidden_act"), name


# --- and each piece can fail: in a row or a package that says something else


@pytest.mark.parametrize(("slug", "model", "words"), PIECES)
def test_a_row_that_is_untrue_is_found(models, slug, model, words):
    """Evidence that another model has too would say nothing about this one."""
    cells, evidence = TABLES[slug][model], EVIDENCE[slug][model][words]
    main, file = place(model, cells)
    sources = model_sources(models, folder(file))
    other = model_sources(models, "llama" if folder(file) == CONTRAST else CONTRAST)
    replaced = dict.fromkeys(sources, "\n".join(other.values()))
    assert "does not have" in problem(words, evidence, cells, main, replaced)
    reworded = [cell.replace(words, "nothing") for cell in cells]
    assert "does not say" in problem(words, evidence, reworded, main, sources)


def test_lines_are_found_in_their_order():
    source = "def f(x):\n    a = g(x)\n\n    return h(a)"
    assert contains(source, "def f(x): a = g(x)")
    assert contains(source, "g( ... h(")
    assert not contains(source, "h( ... g(")
    assert not contains(source, "return a")


def test_tables_are_read():
    text = f"\n## {HEADING}\n\nText | more.\n\n| A | B |\n| --- | --- |\n| x | y `z` |\n\n## Next\n"
    assert table(text) == {"x": ["x", "y `z`"]}
    assert table("## Something else") == {}
    assert place("x", ["x", "y", "`LlamaConfig`, `configuration_llama.py`"]) == (
        "LlamaConfig",
        "configuration_llama.py",
    )
