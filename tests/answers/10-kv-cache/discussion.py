"""Questions to the class about exercise 10. Numbers in the answers are computed here."""

from tools.discussion import Question, row

LAYERS, QUERY_HEADS, KEY_HEADS, WIDTH, TOKENS, BYTES = 2, 8, 2, 64, 1000, 2
NEEDED = 2 * LAYERS * KEY_HEADS * WIDTH * TOKENS * BYTES
LENGTHS, RATIOS = (16, 32, 64, 128), (1.3, 0.9, 1.4, 1.5)

QUESTIONS = [
    Question(
        "read_position_zero generate_offset_by_the_total",
        "A prompt has 4 tokens, and then tokens come one at a time. At which positions are the "
        "next three? What do you get if the position advances by the total length each time?",
        f"{row((4, 5, 6))}. Starting at 4 and adding the total: {row((4, 4 + 5, 4 + 5 + 10))}. "
        "If each piece begins at 0, every new token is rotated as the first one, and distances "
        "to the stored keys are wrong by the length of the cache.",
    ),
    Question(
        "read_sees_key_0_alone read_no_mask read_mask_for_the_prompt_only",
        "Three tokens are in the cache, and a piece of two new ones is read. Write the 2 × 5 mask. "
        "Which row is wrong without a mask, and what does a mask say that is aligned at the top "
        "left?",
        f"{row((1, 1, 1, 1, 0))} and {row((1, 1, 1, 1, 1))}. Without a mask the first new token "
        "sees the second. Aligned at the top left the rows are "
        f"{row((1, 0, 0, 0, 0))} and {row((1, 1, 0, 0, 0))}. Pieces of one token need no mask, "
        "which is why this mistake can live for a long time.",
    ),
    Question(
        "bytes_of_query_heads bytes_keys_only bytes_are_bits",
        f"{LAYERS} layers, {QUERY_HEADS} query heads, {KEY_HEADS} KV heads of width {WIDTH}, "
        f"{TOKENS} tokens, {BYTES} bytes a number. How large is the cache? By which factor is "
        "each of these wrong: counting query heads, forgetting the values?",
        f"2 · {LAYERS} · {KEY_HEADS} · {WIDTH} · {TOKENS} · {BYTES} = {NEEDED:,} bytes. Query "
        f"heads "
        f"are {QUERY_HEADS // KEY_HEADS} times as many: counting them hides what sharing keys "
        "saves. Without the values it is half.",
    ),
    Question(
        "read_keys_cached_unturned read_keys_turned_anew read_values_turned",
        "A cache holds keys that were not rotated, and each step rotates them by their row. "
        "Nothing is wrong until the two oldest tokens are thrown away. What happens to the key of "
        "position 7 then?",
        "It moves up to row 5, and is rotated as if it were at position 5: its distance to the "
        "query grows by 2 in one step. A key that is stored rotated keeps its angle. Values are "
        "not rotated at all, because their position would reach the output.",
    ),
    Question(
        "crossover_first_above crossover_index crossover_median",
        f"Without the cache, a text takes {row(RATIOS, 1)} times as long as with it, at the "
        f"lengths "
        f"{row(LENGTHS)}. From which length on is it worth having, if 1.2 times is the threshold?",
        f"From {LENGTHS[2]} on: from there all ratios are above. The first one above, at "
        f"{LENGTHS[0]}, is followed by one below. And one round is no measurement: the exercise "
        "asks that the lower quartile of the rounds' ratios is above.",
    ),
]
