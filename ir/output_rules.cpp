#include "ir/output_rules.h"

#include <string_view>

#include "core/error.h"

namespace wick {

namespace {

constexpr std::string_view kSameDType =
    " _linalg_det.result _linalg_eigh.eigenvalues _linalg_slogdet.sign _linalg_solve_ex.result"
    " _linalg_svd.U _log_softmax.out _softmax.out _upsample_nearest_exact1d.out"
    " _upsample_nearest_exact2d.out _upsample_nearest_exact3d.out abs.out absolute.out"
    " adaptive_avg_pool2d.out adaptive_avg_pool3d.out adaptive_max_pool2d.out"
    " adaptive_max_pool3d.out addbmm.out addcdiv.out addcmul.out addmm.out addmv.out amax.out"
    " amin.out aminmax.out argmax.out argmin.out avg_pool2d.out avg_pool3d.out baddbmm.out"
    " binary_cross_entropy.out bitwise_not.out bmm.out bucketize.Scalar_out bucketize.Tensor_out"
    " ceil.out clamp.out clamp_max.out clamp_min.out clip.out complex.out cross.out cummax.out"
    " cummin.out diag.out dot.out elu.out fix.out float_power.Scalar_out"
    " float_power.Tensor_Scalar_out float_power.Tensor_Tensor_out floor.out frac.out"
    " fractional_max_pool2d.output frexp.Tensor_out gather.out gelu.out hardshrink.out"
    " hardsigmoid.out hardswish.out hardtanh.out heaviside.out histc.out histogram.bin_ct_out"
    " histogram.bins_tensor_out index_add.out index_copy.out index_reduce.out index_select.out"
    " inverse.out isin.Scalar_Tensor_out isin.Tensor_Scalar_out isin.Tensor_Tensor_out"
    " isneginf.out isposinf.out kthvalue.values leaky_relu.out lerp.Tensor_out"
    " linalg_cholesky.out linalg_cholesky_ex.L linalg_cross.out linalg_det.out"
    " linalg_eigh.eigvals linalg_eigvalsh.out linalg_inv.out linalg_inv_ex.inverse"
    " linalg_ldl_factor.out linalg_ldl_factor_ex.out linalg_ldl_solve.out linalg_lu.out"
    " linalg_lu_factor.out linalg_lu_factor_ex.out linalg_lu_solve.out linalg_matrix_norm.out"
    " linalg_matrix_norm.str_ord_out linalg_multi_dot.out linalg_norm.ord_str_out"
    " linalg_norm.out linalg_qr.out linalg_slogdet.out linalg_solve.out linalg_solve_ex.out"
    " linalg_solve_triangular.out linalg_svd.U linalg_svdvals.out linalg_vecdot.out"
    " linalg_vector_norm.out linear.out log_sigmoid.out log_sigmoid_forward.output"
    " log_softmax.int_out logcumsumexp.out lu_solve.out lu_unpack.out masked_select.out"
    " matmul.out max.dim_max max_pool2d_with_indices.out max_pool3d_with_indices.out"
    " max_unpool2d.out max_unpool3d.out median.dim_values min.dim_min mish.out mm.out"
    " mode.values msort.out multi_margin_loss.out multilabel_margin_loss.out"
    " multilabel_margin_loss_forward.output multinomial.out mv.out nan_to_num.out"
    " nanmedian.dim_values nanquantile.out nanquantile.scalar_out narrow_copy.out neg.out"
    " negative.out nll_loss2d_forward.output nll_loss_forward.output nonzero.out ormqr.out"
    " polar.out qr.Q quantile.out quantile.scalar_out reflection_pad1d.out reflection_pad2d.out"
    " reflection_pad3d.out renorm.out replication_pad1d.out replication_pad2d.out"
    " replication_pad3d.out round.decimals_out round.out scatter.reduce_out scatter.src_out"
    " scatter.value_out scatter.value_reduce_out scatter_add.out scatter_reduce.two_out"
    " searchsorted.Scalar_out searchsorted.Tensor_out sgn.out sign.out silu.out slogdet.out"
    " slow_conv3d.out slow_conv_transpose2d.out soft_margin_loss.out softmax.int_out"
    " softplus.out softshrink.out sort.values sort.values_stable square.out take.out"
    " take_along_dim.out tensordot.out thnn_conv2d.out topk.values triangular_solve.X tril.out"
    " triu.out trunc.out upsample_bicubic2d.out upsample_bilinear2d.out upsample_linear1d.out"
    " upsample_nearest1d.out upsample_nearest2d.out upsample_nearest3d.out"
    " upsample_trilinear3d.out vdot.out where.self_out ";

constexpr std::string_view kAnyDType =
    " _adaptive_avg_pool2d.out _adaptive_avg_pool3d.out _cdist_forward.out _convolution.out"
    " _euclidean_dist.out _histogramdd_from_bin_cts.out _histogramdd_from_bin_tensors.out"
    " _fft_c2c.out _fft_c2r.out _fft_r2c.out _pdist_forward.out add.Scalar_out"
    " as_strided_scatter.out bincount.out block_diag.out celu.out clone.out constant_pad_nd.out "
    "convolution.out count_nonzero.dim_IntList_out"
    " count_nonzero.out diag_embed.out diagonal_scatter.out dist.out div.Scalar_out"
    " div.Scalar_mode_out"
    " embedding.out flip.out frobenius_norm.out grid_sampler_2d.out index_fill.int_Scalar_out"
    " index_fill.int_Tensor_out index_put.out linalg_matrix_exp.out masked_fill.Scalar_out"
    " masked_fill.Tensor_out masked_scatter.out median.out mul.Scalar_out nanmedian.out"
    " nuclear_norm.dim_out nuclear_norm.out pixel_shuffle.out pixel_unshuffle.out prelu.out"
    " put.out relu.out repeat.out roll.out rot90.out rsub.Scalar_out rsub.Tensor_out"
    " segment_reduce.out select_scatter.out sub.Scalar_out trace.out ";

constexpr std::string_view kBoolean =
    " all.all_out all.dim_out all.out any.all_out any.dim_out any.out ";

constexpr std::string_view kReal =
    " fft_hfft.out fft_hfft2.out fft_hfftn.out fft_irfft.out fft_irfft2.out fft_irfftn.out"
    " logsumexp.out nanmean.out ";

}  // namespace

OutputRule outputRuleOf(const FunctionSchema& schema) {
  constexpr std::string_view kPrefix = "aten::";
  if (!schema.name().starts_with(kPrefix)) return OutputRule::Castable;
  const std::string name = " " + schema.name().substr(kPrefix.size()) + ".";
  // What PyTorch calls Tensor_out may be called out here (outSchema).
  const std::string own = name + schema.overload() + " ", other = name + "Tensor_out ";
  const auto is_in = [&](std::string_view list) {
    return list.find(own) != list.npos ||
           (schema.overload() == "out" && list.find(other) != list.npos);
  };
  if (is_in(kSameDType)) return OutputRule::Same;
  if (is_in(kAnyDType)) return OutputRule::Any;
  if (is_in(kReal)) return OutputRule::Real;
  return is_in(kBoolean) ? OutputRule::Boolean : OutputRule::Castable;
}

void checkOutput(const std::string& name, OutputRule rule, DType result, DType out) {
  if (result == out || rule == OutputRule::Any) return;
  if (rule == OutputRule::Boolean && (out == DType::Byte || out == DType::Bool)) return;
  WICK_CHECK(rule == OutputRule::Castable || (rule == OutputRule::Real && !isComplex(out)),
             "{}: Expected out tensor to have dtype {}, but got {} instead", name, toString(result),
             toString(out));
  WICK_CHECK(canCast(result, out), "{}: result type {} can't be cast to the desired output type {}",
             name, toString(result), toString(out));
}

}  // namespace wick
