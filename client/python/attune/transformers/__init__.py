"""transformers' models with attune's kernels: importing this registers the attention implementation "attune".

import attune.transformers

model = AutoModelForCausalLM.from_pretrained(name, attn_implementation="attune")  # or model.set_attn_implementation
"""

from __future__ import annotations

try:
    from transformers import AttentionInterface, AttentionMaskInterface

    from attune.transformers.forward import attention_forward
    from attune.transformers.masks import attention_mask
except ImportError as error:
    raise ImportError(
        f"attune.transformers needs PyTorch and transformers 5.23 or later ({error}): "
        "pip install 'attune-attention[transformers]'"
    ) from error

NAME = "attune"

__all__ = ["NAME", "attention_forward", "attention_mask"]

# Both under one name: without the second transformers passes no mask at all, and padding is attended to.
AttentionInterface.register(NAME, attention_forward)
AttentionMaskInterface.register(NAME, attention_mask)
