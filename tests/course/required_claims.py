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
}
