"""Written with loops over texts, rows and heads."""

import torch


# %% shift-answer
def teacher_forcing(tokens, real):
    inputs, targets, counts = [], [], []
    for text, is_real in zip(tokens.tolist(), real.tolist(), strict=True):
        pairs = list(zip(text, text[1:], is_real[1:], strict=False))
        inputs.append([read for read, _, _ in pairs])
        targets.append([say for _, say, _ in pairs])
        counts.append([known for _, _, known in pairs])
    return torch.tensor(inputs), torch.tensor(targets), torch.tensor(counts)


# %% loss-answer
def cross_entropy(logits, targets, counts):
    total, n = 0.0, 0
    for text, wanted, known in zip(logits, targets, counts, strict=True):
        for row, token, yes in zip(text, wanted, known, strict=True):
            if yes:
                top = row.max()
                total = total + top + (row - top).exp().sum().log() - row[token]
                n += 1
    return total / n


# %% encoder-answer
def encoder_layer(x, real, attention_weights, feed_forward_weights, norms):
    texts = []
    for tokens, known in zip(x, real, strict=True):
        normed = layer_norm(tokens, norms[0])[None]
        y = tokens + attend(normed, normed[:, known], attention_weights, known[known])[0]
        rows = [row + feed_forward(layer_norm(row, norms[1]), feed_forward_weights) for row in y]
        texts.append(torch.stack(rows))
    return torch.stack(texts)


# %% decoder-answer
def decoder_layer(
    x, context, context_real, self_weights, cross_weights, feed_forward_weights, norms
):
    texts = []
    for tokens, source, known in zip(x, context, context_real, strict=True):
        normed = layer_norm(tokens, norms[0])[None]
        source, seen, rows = source[None, known], known[known], []
        for m in range(len(tokens)):
            everything = torch.ones(m + 1, dtype=torch.bool)
            row = tokens[None, m : m + 1]
            row = row + attend(normed[:, m : m + 1], normed[:, : m + 1], self_weights, everything)
            row = row + attend(layer_norm(row, norms[1]), source, cross_weights, seen)
            rows.append(row + feed_forward(layer_norm(row, norms[2]), feed_forward_weights))
        texts.append(torch.cat(rows, dim=1))
    return torch.cat(texts)


# %% greedy-answer
def greedy(decoder, prompt, max_new_tokens, end_token):
    said = [[] for _ in prompt]
    for _ in range(max_new_tokens):
        texts = [[*text, *new] for text, new in zip(prompt.tolist(), said, strict=True)]
        logits = decoder(torch.tensor(texts))
        for new, rows in zip(said, logits.tolist(), strict=True):
            best = max(range(len(rows[-1])), key=rows[-1].__getitem__)
            new.append(end_token if end_token in new else best)
        if all(end_token in new for new in said):
            break
    return torch.tensor(said)
