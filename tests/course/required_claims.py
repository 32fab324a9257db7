"""The claims that each chapter has to make: the list that keeps one from vanishing unnoticed.

A chapter's claims are exactly these. A new claim is added here, and gets a check in the chapter
and a perturbation in ``perturbations/<slug>.py``.
"""

REQUIRED: dict[str, frozenset[str]] = {
    "01-attention": frozenset(
        {
            "prp-soft-lookup",
            "prp-dot-norms",
            "eq-attention",
            "thm-variance",
            "cor-scale",
            "eq-softmax-jacobian",
            "thm-saturation",
            "prp-mask",
            "eq-zeroed-values",
            "eq-causal-mask",
            "thm-tied",
            "eq-double-projection",
            "prp-relu",
        }
    ),
    "02-multi-head": frozenset(
        {
            "thm-one-list",
            "thm-blocks",
            "prp-view",
            "eq-output-sum",
            "prp-equal-heads",
            "eq-head-parameters",
            "eq-head-products",
            "prp-padding",
            "thm-prefix",
            "prp-one-key",
            "thm-equivariance",
            "cor-encoder",
            "prp-causal-order",
            "prp-dense",
            "eq-full-map",
        }
    ),
    "03-sinusoidal": frozenset(
        {
            "prp-lookup",
            "prp-one-hot",
            "prp-sum",
            "thm-circles",
            "eq-sinusoidal",
            "eq-wavelength",
            "prp-chord",
            "prp-grid",
            "eq-shift",
            "thm-shifts",
            "prp-sign",
            "eq-dot",
            "thm-between",
            "thm-never",
            "prp-path",
        }
    ),
    "04-relative": frozenset(
        {
            "eq-four-terms",
            "prp-independence",
            "thm-relative-term",
            "eq-shaw",
            "eq-shaw-values",
            "eq-transformer-xl",
            "eq-t5",
            "eq-t5-bucket",
            "prp-unscaled",
            "eq-deberta",
            "eq-tupe",
            "prp-term-variance",
            "prp-read-terms",
            "prp-shift",
            "prp-shared-bias",
        }
    ),
    "05-rope": frozenset(
        {
            "eq-complex-dot",
            "thm-rope-plane",
            "thm-rope-power",
            "thm-rope-pairs",
            "eq-rope-frequencies",
            "eq-rope-matrix",
            "thm-rope-group",
            "eq-rope-relative",
            "prp-rope-transpose",
            "eq-rope-layout",
            "prp-rope-mixed",
            "prp-rope-opposite",
            "prp-rope-values",
            "prp-rope-evicted",
            "eq-rope-score",
            "thm-rope-abel",
            "prp-rope-flat",
            "prp-rope-favourite",
            "thm-rope-return",
            "prp-rope-unseen",
            "prp-rope-base",
            "eq-rope-interpolation",
            "eq-rope-ntk",
            "eq-rope-yarn",
            "eq-rope-temperature",
        }
    ),
    "06-alibi": frozenset(
        {
            "prp-discount",
            "eq-alibi",
            "prp-translation",
            "prp-position-free",
            "eq-alibi-slopes",
            "prp-official-slopes",
            "prp-recency",
            "prp-overrule",
            "prp-bloom",
            "prp-mirror",
            "thm-tail",
            "cor-window",
        }
    ),
}
