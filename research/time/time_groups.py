"""Groups of the unseen rounds that time_model.py reports on: title -> pattern for the start of a name.

The groups of a round are fixed before it is timed (packages/ptxsim/docs/timing.md).
"""

GROUPS = {
    "all": "",
    "Hopper rungs": "hopper",
    "Ampere rungs": "ampere",
    "Triton, products": "grouped|persistent|split_k|batched|fused"
    "|scaled|weights|dual|described|looping|triangular|convolution"
    "|experts|weight_gradient|routed|stream_k|thin|chained",
    "Triton, attention": "attention|causal|windowed|shared_keys",
    "Triton, streams": "softmax|layernorm|rms_norm|gated|log_sum_exp|transpose|add"
    "|matvec|norm_backward|cross_entropy|rotary|column_sums|adam|dropout|running_sum|four_taps"
    "|quantised|embedding|group_norm|residual_norm|batch_stats|top_one",
    "pyptx": "pyptx",
    "plain CUDA": "plain",
}
NEW = {  # Triton's kinds that no earlier round has
    4: "scaled|weights|dual|described|looping|triangular|convolution|causal"
    "|matvec|norm_backward|cross_entropy|rotary|column_sums|adam|dropout|running_sum|four_taps",
    5: "experts|weight_gradient|routed|stream_k|thin|chained|windowed|shared_keys"
    "|quantised|embedding|group_norm|residual_norm|batch_stats|top_one",
}


def groups(number: int) -> dict[str, str]:
    """GROUPS, and those for the kinds that are new in a round."""
    if number not in NEW:
        return GROUPS
    new, known = f"Triton, kinds new in round {number}", "rungs, pyptx, Triton's known kinds"
    return GROUPS | {new: NEW[number], known: f"(?!plain|{NEW[number]})"}
