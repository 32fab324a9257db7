"""Right, with the order of tokens from differences, and largest logarithms moved to the queries."""

import torch


# %% global-answer
def add_global_tokens(mask, q_positions, k_positions, global_positions, causal):
    distance = q_positions.unsqueeze(-1) - k_positions.unsqueeze(-2)
    added = torch.isin(q_positions, global_positions).unsqueeze(-1)
    added = added | torch.isin(k_positions, global_positions).unsqueeze(-2)
    return mask | (added & (distance >= 0) if causal else added)


# %% linear-answer
def linear_attention(log_query_features, log_key_features, value):
    largest = log_key_features.amax(dim=-2, keepdim=True)  # of each feature
    keys = torch.exp(log_key_features - largest)
    queries = torch.softmax(log_query_features + largest, dim=-1)
    return queries @ (keys.mT @ value) / (queries @ keys.sum(dim=-2).unsqueeze(-1))
