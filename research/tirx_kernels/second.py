"""The second configuration of each kernel that is run: the smallest that differs in more than its size.

Kernel -> (configuration of the library, name of ours, changes that make ours small enough for a run).
For a kernel that is not listed, `catalogue.chosen` finds one.
"""

from __future__ import annotations

DENSE, CUDNN, DEEP = "cudnn_sm100_dense_", "cudnn_sm100_", "deepgemm_sm100_"
MSA, SSU, MLA = "msa_sparse_atten_", "selective_state_update_", "sparse_flashmla_"
KIND = "b64_h64_d64_s128_t4_r8"
SECOND: dict[str, tuple] = {
    "fp16_bf16_gemm": ("bf16_1024x1024x1024",),
    "nvfp4_gemm": ("2048x2048x2048",),
    "kda_decode_multishape": ("t1_b8_hv32_standard", "t1_b2_hv32_standard", {"num_seqs": 2}),
    "kda_forward_portfolio_multishape": (
        "h64_ragged_tails", "h16_s31_s64", {"num_heads": 16, "seq_lens": (31, 64)},
    ),
    "mla_dsv4_multishape": ("decode_h8_swa512_swa128_fp8_nhd",),
    "msa_prefill_multishape": (
        "flat_fp8_b3_q1024_kv8192_h32", "flat_fp8_b1_q128_kv4096_h32",
        {"batch_size": 1, "seqlen_q": 128, "seqlen_kv": 4096},
    ),
    "rmsnorm": ("hs4096_bs1",),
    f"{CUDNN}bsa_backward_blk64": ("c02_b1_h2_sq128_skv256_kv2_mask_bshd",),
    f"{CUDNN}bsa_forward_blk128": ("c_fp16_d64_mha_sq127_skv255_kv2_mask",),
    f"{CUDNN}bsa_forward_blk64": ("b1_h2_sq129_skv512_maxkv4_var_0_1_4_mask_bhsd_s1_clc",),
    f"{CUDNN}csa_compressor_fwd": ("emptyseg_64_0_253_3_d128_c2",),
    f"{CUDNN}moe_blockscaled_grouped_gemm_dglu_dbias": (
        "pair_e4_t1024_n512_k512_dndy_sw_e5_e8v32_ce5_de4_bn_t128x256_c1x1_pas",
    ),
    f"{CUDNN}moe_grouped_gemm_dglu_dbias": (
        "tilen03_e2_t512_n512_k512_dnst_sw_cbf16_dbf16_bn_t128x128_c1x2_vb",
    ),
    f"{CUDNN}dsa_sparse_attention_backward": (
        "d576_h32_fp16_sq1024_skv4096_t512_nolen", "d576_h32_fp16_sq2_skv256_t64_nolen",
        {"seqlen_q": 2, "seqlen_kv": 256, "max_topk": 64},
    ),
    f"{CUDNN}gdn2_bprop_f16": ("state",),
    f"{CUDNN}gdn2_prefill_f16": ("pairwise_01",),
    f"{CUDNN}gdn2_recompute_f16": ("pairwise_01",),
    f"{CUDNN}gdn_bprop_f16": ("basic_fp16_full",),
    f"{CUDNN}gdn_prefill_f16": ("pairwise_01",),
    f"{CUDNN}gdn_recompute_f16": ("pairwise_01",),
    f"{CUDNN}kda_bprop_f16": ("state",),
    f"{CUDNN}gemm_proj_rope_mxfp8_bf16in": ("t128_k1536_h128_w_out_in_true",),
    f"{CUDNN}gemm_proj_rope_mxfp8_mxfp8in": ("t256_k1536_h128",),
    f"{DENSE}blockscaled_gemm_persistent_swiglu_interleaved_quant": (
        "pair_m256_n256_k256_e4_e8v32_bf16_bf16_kn_m_t128x64_c1x1_sf32_l1",
    ),
    f"{DENSE}gemm_persistent_swiglu": ("tail_m144_n192_k144_e5_f16_bf16_bf16_kk_m_t128x128_c1x1_l2",),
    f"{DEEP}fp8_bmm": ("bhd_hdr_bhr_b128_h8_r4096_d1024",),
    f"{DEEP}fp8_gemm_1d1d": (
        "m7168_n4096_k2048_mnmn_acc_fp32", "m256_n512_k512_mnmn_acc_fp32", {"M": 256, "N": 512, "K": 512},
    ),
    f"{DEEP}k_grouped_fp8_gemm_contiguous": (
        "g8_m768_n2048_k128_gran32_al32_empty", "g3_m256_n512_empty", {"num_groups": 3, "M": 256, "N": 512},
    ),
    f"{DEEP}m_grouped_fp8_gemm_contiguous": (
        "g4_m8192_n4096_k4096_kmn", "g2_m256_n512_k512_kmn",
        {"num_groups": 2, "expected_m_per_group": 256, "N": 512, "K": 512},
    ),
    f"{DEEP}m_grouped_fp8_gemm_masked": (
        "g6_m20_n4096_k2048", "g2_m150_n1024_k1024",
        {"num_groups": 2, "expected_m_per_group": 150, "N": 1024, "K": 1024},
    ),
    f"{DEEP}fp4_mqa_logits": (
        "s2048_skv4096_h64_d128_bf16_compressed_cp", "s256_skv512_bf16_compressed",
        {"seq_len": 256, "seq_len_kv": 512},
    ),
    f"{DEEP}fp8_mqa_logits": (
        "s2048_skv4096_h64_d128_bf16_compressed_cp", "s256_skv512_bf16_compressed",
        {"seq_len": 256, "seq_len_kv": 512},
    ),
    f"{DEEP}fp4_paged_mqa_logits": (
        "b1_n1_mp1_ps32_h64_d128_bf16_fixed", "b1_bf16_64_pages", {"num_pages": 64},
    ),
    f"{DEEP}fp8_paged_mqa_logits": ("b2_n1_mp4_ps64_h64_d128_bf16_fixed",),
    f"{DEEP}tf32_hc_prenorm_gemm": ("m128_n24_k16384_s64",),
    "flash_attention4": (
        "s1024_h32kv4_causal", "s256_h2kv1_causal", {"seq_len": 256, "num_qo_heads": 2, "num_kv_heads": 1},
    ),
    "flash_attention4_fp4": (
        "nvfp4_nvfp4_b1_s256_h32kv32_d128", "nvfp4_nvfp4_b1_s256_h2kv2_d128",
        {"num_qo_heads": 2, "num_kv_heads": 2},
    ),
    "flash_attention_backward_sm100": (
        "b1_s8192_h16_noncausal", "b1_s256_h2_noncausal", {"seq_len": 256, "num_heads": 2},
    ),
    "silu_and_mul_nvfp4_experts_quantize": ("bf16_b2_m64_k48",),
    "gdn_decode_bf16_wide_vec_mtp": ("t3_packed_qkv",),
    "gdn_decode_fp32_mtp_warp": ("t4_cache_update", "t4_b3_cache_update", {"batch": 3}),
    "gdn_cp_prefill_sm100": ("bf16_q1_k1_v1_s256+0_c128_final_f32_i64",),
    "gdn_prefill_sm100": ("hq4_hv16_s6144+2048", "hq4_hv16_s80+48", {"seq_lens": (80, 48)}),
    "recurrent_kda_decode_grouped": ("ver_t2_hv16_b8_sp", "ver_t2_hv16_b2_sp", {"num_seqs": 2}),
    "recurrent_kda_decode_one_warp": ("hv16_b8_tr8_lb",),
    f"{SSU}mtp_horizontal": (f"{KIND}_statef16", "b1_h64_d64_s128_t4_r8_statef16", {"batch": 1}),
    f"{SSU}mtp_simple": (
        "n4_h64_d64_s128_t4_r8_varlen_uniform", "n2_h8_d64_s128_t4_r8_varlen_uniform",
        {"batch": 2, "nheads": 8},
    ),
    f"{SSU}mtp_vertical": (f"{KIND}_z", "b1_h64_d64_s128_t4_r8_z", {"batch": 1}),
    f"{SSU}stp_horizontal": ("b1_h64_d64_s128_r8_dst2d_correctness",),
    f"{SSU}stp_simple": ("b1_h64_d64_s128_r8_int16",),
    f"{SSU}stp_vertical": ("b1_h64_d64_s128_r8_int16",),
    "flashinfer_fused_dit_layernorm": ("grss_bf16_b1_r768_aux2d", "grss_bf16_b1_r8_aux2d", {"num_rows": 8}),
    "fast_topk_clusters": ("f16_plain_b16_l4096_k256",),
    "filtered_topk": ("f16_pt_det_tlarge_r4_l8192_k256",),
    "flash_mla_sparse_fwd": (
        "bench_dqk576_hq64_s4096_kv8192_topk512", "dqk576_s3_kv1024_topk512", {"s_q": 3, "s_kv": 1024},
    ),
    f"{MLA}decode_head64": (
        "model1_b2_sq2_sk16384_topk128_p256_xsk16384_xtopk512_xp64",
        "model1_b1_sk512_topk128_xsk512_xtopk512",
        {"b": 1, "s_kv": 512, "extra_s_kv": 512},
    ),
    f"{MLA}prefill_head128_phase1": (
        "bench_regular_dqk576_hq128_s4096_kv8192_topk2048", "dqk576_s2_kv1536_topk1408",
        {"s_q": 2, "s_kv": 1536, "topk": 1408},
    ),
    f"{MLA}prefill_head128_small_topk_phase1": (
        "bench_smalltopk_dqk512_hq128_s4096_kv8192_topk1280", "s3_kv2048_nosink",
        {"s_q": 3, "s_kv": 2048, "have_attn_sink": False},
    ),
    f"{MLA}prefill_head64_phase1": (
        "bench_dqk576_hq64_s4096_kv8192_topk512", "dqk576_s3_kv1024", {"s_q": 3, "s_kv": 1024},
    ),
    f"{MSA}fwd_sm100": (
        "corr_fp8_pvbf16_gather4_qh4_s2048", "fp8_pvbf16_gather4_qh4_s512_t2",
        {"seqlen_q": 512, "seqlen_k": 512, "topk": 2, "head_kv": 1},
    ),
    f"{MSA}fwd_combine_sm100": (
        "corr_fp16p_s4096_qh8_t8", "fp16p_s512_qh2_t4",
        {"seqlen_q": 512, "seqlen_k": 512, "qhead_per_kv": 2, "topk": 4},
    ),
    f"{MSA}fwd_nvfp4_kv_sm100": (
        "corr_noncausal_bf16q_s512_qh4_t4", "noncausal_bf16q_s512_qh2_t2",
        {"head_kv": 1, "qhead_per_kv": 2, "topk": 2},
    ),
    "msa_sparse_prepare_fwd_split_atomic_sm100": ("edge_b1_k512_h1",),
    "vsa_multishape": (
        "pooled_blk128_s16384_topk13", "pooled_blk128_s1024_topk4", {"seq_len": 1024, "topk": 4},
    ),
}  # fmt: skip
