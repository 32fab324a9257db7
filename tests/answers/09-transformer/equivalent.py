"""Mutants of the solutions that no test can tell from them: the mutant, and why."""

TWO = "there are two dimensions here, so dimension 1 is the last one"

BEST = "best = decoder(text)[:, -1].argmax(dim={})"
LOSS = "return (torch.logsumexp(z, dim={}) - right).mean()"

EQUIVALENT = {
    f"greedy-answer: {BEST.format(-1)} -> {BEST.format(1)}": TWO,
    f"loss-answer: {LOSS.format(-1)} -> {LOSS.format(1)}": TWO,
}
