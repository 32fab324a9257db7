"""The decoder reads the whole buffer, with end tokens behind the text: wasted work in each step.

Loses: greedy-steps
"""


# %% greedy-answer
def greedy(decoder, prompt, max_new_tokens, end_token):
    start = prompt.shape[1]
    text = prompt.new_full((len(prompt), start + max_new_tokens), end_token)
    text[:, :start] = prompt
    ended = prompt.new_zeros(len(prompt)).bool()
    for end in range(start, text.shape[1]):
        best = decoder(text)[:, end - 1].argmax(dim=-1)
        text[:, end] = best.masked_fill(ended, end_token)
        ended = text[:, end] == end_token
        if ended.all():
            break
    return text[:, start : end + 1]
