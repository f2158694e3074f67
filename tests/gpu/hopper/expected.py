"""What attention comes to, in fp32, with torch: one query head at a time."""

import math

import torch


def visible(problem, device):
    """[seq_q, seq_kv]; None: everything."""
    if problem.mask == "none":
        return None
    last = torch.arange(problem.seq_q, device=device)[:, None]
    if problem.mask != "causal":
        last = last + problem.seq_kv - problem.seq_q
    keys = torch.arange(problem.seq_kv, device=device)[None]
    seen = keys <= last
    return seen & (keys > last - problem.window) if problem.window else seen


def attend(problem, q, k, v, sinks=None, plain=False, heads=None):
    """(O, LSE) [heads, seq_q, ...] of (batch, head) pairs, all unless given. Tensors are [batch, head, row, column].

    `plain`: logits, weights and O are rounded as a plain computation at the problem's dtype does.
    """
    rounded = (lambda x: x.to(q.dtype).float()) if plain else (lambda x: x)
    seen = visible(problem, q.device)
    outputs, sums = [], []
    for b, h in heads or [(b, h) for b in range(problem.batch) for h in range(problem.heads_q)]:
        h_kv = h // (problem.heads_q // problem.heads_kv)
        logits = rounded((q[b, h].float() @ k[b, h_kv].float().T) / math.sqrt(problem.head_dim))
        if problem.softcap:
            logits = rounded(problem.softcap * torch.tanh(logits / problem.softcap))
        if seen is not None:
            logits = logits.masked_fill(~seen, -math.inf)
        if sinks is not None:
            logits = torch.cat([logits, sinks[h].expand(problem.seq_q, 1)], 1)
        total = torch.logsumexp(logits, 1)
        weights = torch.exp(logits - torch.where(total == -math.inf, 0.0, total)[:, None])[:, : problem.seq_kv]
        outputs.append(rounded(rounded(weights) @ v[b, h_kv].float()))
        sums.append(total)
    return torch.stack(outputs), torch.stack(sums)


def pairs(problem):
    """Query-key pairs of a head."""
    if problem.mask == "none":
        return problem.seq_q * problem.seq_kv
    offset = 0 if problem.mask == "causal" else problem.seq_kv - problem.seq_q
    count = 0
    for row in range(problem.seq_q):
        first = max(0, row + offset - problem.window + 1) if problem.window else 0
        count += max(0, min(problem.seq_kv, row + offset + 1) - first)
    return count


def flops(problem):
    return 4 * problem.batch * problem.heads_q * problem.head_dim * pairs(problem)
