// Operators whose kernels work with tensors of any device, because they look at no element
// themselves: they ask other operators, tensors' own functions, and the products, convolutions and
// pooling of runtime/kernels/device_layers.h. Operators that make views need not be listed.
#include <deque>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "ir/device_kernels.h"

namespace wick::ops {

namespace {

constexpr const char* kOneDevice[] = {
    // Products.
    "aten::mm", "aten::bmm", "aten::matmul", "aten::mv", "aten::dot", "aten::vdot", "aten::inner",
    "aten::outer", "aten::ger", "aten::addmm", "aten::_addmm_activation", "aten::addmv",
    "aten::addbmm", "aten::addbmm_", "aten::baddbmm", "aten::addr", "aten::linear",
    "aten::mkldnn_linear", "prepacked::linear_clamp_run", "aten::bilinear", "aten::_grouped_mm",
    "transformers::grouped_mm_fallback", "aten::tensordot", "aten::chain_matmul",
    "aten::linalg_multi_dot", "aten::linalg_matmul", "aten::einsum", "aten::einsum.sublist",
    "wick::linear_fused", "wick::mm_weight", "wick::loop_weight",
    // Convolutions.
    "aten::conv1d", "aten::conv1d.padding", "aten::conv2d", "aten::conv2d.padding", "aten::conv3d",
    "aten::conv3d.padding", "aten::conv_transpose1d", "aten::conv_transpose2d.input",
    "aten::conv_transpose3d.input", "aten::_convolution", "aten::_convolution.deprecated",
    "aten::_convolution_mode", "aten::convolution", "aten::convolution_overrideable",
    "prepacked::conv2d_clamp_run", "prepacked::conv2d_transpose_clamp_run",
    "aten::mkldnn_convolution", "aten::conv_tbc", "aten::thnn_conv2d", "aten::_slow_conv2d_forward",
    "aten::slow_conv3d", "aten::slow_conv3d_forward", "aten::slow_conv_dilated2d",
    "aten::slow_conv_dilated3d", "aten::conv_depthwise3d", "aten::slow_conv_transpose2d",
    "aten::slow_conv_transpose3d", "wick::conv2d_fused", "wick::training_layout", "aten::im2col",
    "aten::col2im", "aten::rms_norm", "aten::_fused_rms_norm", "aten::_native_batch_norm_legit",
    "aten::_native_batch_norm_legit.no_stats", "aten::_native_batch_norm_legit_no_training",
    "aten::_native_batch_norm_legit_functional", "aten::_batch_norm_with_update",
    "aten::_batch_norm_with_update_functional", "aten::_batch_norm_no_update",
    "aten::fractional_max_pool2d", "aten::fractional_max_pool3d", "aten::bernoulli",
    "aten::bernoulli.p", "aten::rand_like", "aten::randn_like", "aten::randint_like",
    "aten::randint_like.low_dtype", "aten::normal.Tensor_float", "aten::normal.float_Tensor",
    "aten::normal.Tensor_Tensor", "aten::normal_functional", "aten::native_dropout_backward",
    "aten::feature_dropout", "aten::alpha_dropout", "aten::feature_alpha_dropout",
    "aten::_no_grad_uniform_", "aten::_no_grad_normal_",
    // Fourier transforms.
    "aten::fft_fft", "aten::fft_ifft", "aten::fft_rfft", "aten::fft_irfft", "aten::fft_hfft",
    "aten::fft_ihfft", "aten::fft_fft2", "aten::fft_ifft2", "aten::fft_rfft2", "aten::fft_irfft2",
    "aten::fft_hfft2", "aten::fft_ihfft2", "aten::fft_fftn", "aten::fft_ifftn", "aten::fft_rfftn",
    "aten::fft_irfftn", "aten::fft_hfftn", "aten::fft_ihfftn", "aten::fft_fftshift",
    "aten::fft_ifftshift", "aten::stft", "aten::stft.center", "aten::istft", "wick::overlap_add",
    // Linear algebra that ends in factorizations and products.
    "aten::linalg_lu_factor", "aten::linalg_lu", "aten::linalg_solve", "aten::linalg_solve_ex",
    "aten::_linalg_solve_ex", "aten::linalg_inv", "aten::inverse", "aten::linalg_inv_ex",
    "aten::linalg_det", "aten::det", "aten::_linalg_det", "aten::linalg_slogdet", "aten::slogdet",
    "aten::_linalg_slogdet", "aten::logdet", "aten::linalg_cholesky", "aten::cholesky",
    "aten::linalg_qr", "aten::qr", "aten::linalg_svd", "aten::linalg_svdvals", "aten::svd",
    "aten::linalg_eigh", "aten::linalg_eigvalsh", "aten::symeig", "aten::linalg_lstsq",
    "aten::linalg_matrix_norm", "aten::linalg_matrix_norm.str_ord", "aten::nuclear_norm",
    "aten::nuclear_norm.dim", "aten::linalg_matrix_rank.atol_rtol_tensor",
    "aten::linalg_matrix_rank.atol_rtol_float", "aten::linalg_matrix_rank",
    "aten::linalg_matrix_rank.tol_tensor", "aten::linalg_pinv.atol_rtol_tensor",
    "aten::linalg_pinv.atol_rtol_float", "aten::linalg_pinv", "aten::linalg_pinv.rcond_tensor",
    "aten::pinverse", "aten::linalg_cond", "aten::linalg_cond.p_str", "aten::linalg_matrix_power",
    "aten::linalg_tensorinv", "aten::linalg_tensorsolve", "aten::linalg_vander", "aten::matrix_exp",
    "aten::linalg_matrix_exp", "aten::_compute_linear_combination", "aten::_linalg_check_errors",
    "aten::linalg_vecdot", "aten::linalg_cross", "aten::cross", "aten::kron", "aten::renorm",
    // Convolutions in training.
    "wick::convolution_in_training", "wick::conv_input_gradient", "wick::conv_weight_gradient",
    "aten::convolution_backward", "wick::batch_norm_train", "wick::batch_norm_evaluate",
    // Diagonals and slices.
    "aten::diag_embed", "aten::diag", "aten::diagflat", "aten::diagonal_scatter",
    "aten::select_scatter", "aten::slice_scatter", "aten::diff", "aten::as_strided_scatter",
    "aten::gradient.scalarint", "aten::gradient.scalararray", "aten::gradient.array",
    "aten::gradient.scalarrayint", "aten::gradient.scalarrayarray", "aten::gradient.tensorarrayint",
    "aten::gradient.tensorarray",
    // Statistics and integrals.
    "aten::cov", "aten::corrcoef", "aten::trapezoid.x", "aten::trapezoid.dx", "aten::trapz.x",
    "aten::trapz.dx", "aten::cumulative_trapezoid.x", "aten::cumulative_trapezoid.dx",
    // Pooling.
    "aten::max_pool1d", "aten::max_pool2d", "aten::max_pool3d", "aten::mkldnn_max_pool2d",
    "aten::max_pool1d_with_indices", "aten::max_pool2d_with_indices",
    "aten::max_pool3d_with_indices", "aten::avg_pool1d", "aten::avg_pool2d", "aten::avg_pool3d",
    "aten::adaptive_avg_pool1d", "aten::adaptive_avg_pool2d", "aten::adaptive_avg_pool3d",
    "aten::adaptive_max_pool1d", "aten::adaptive_max_pool2d", "aten::adaptive_max_pool3d",
    "aten::_adaptive_avg_pool2d", "aten::_adaptive_avg_pool3d", "aten::mkldnn_adaptive_avg_pool2d",
    "wick::avg_pool_gradient", "wick::adaptive_avg_pool_gradient",
    // Padding.
    "aten::pad", "aten::_pad_enum", "aten::_pad_circular", "aten::reflection_pad1d",
    "aten::reflection_pad2d", "aten::reflection_pad3d", "aten::replication_pad1d",
    "aten::replication_pad2d", "aten::replication_pad3d",
    // Resampling.
    "aten::upsample_nearest1d", "aten::upsample_nearest1d.vec", "aten::upsample_nearest2d",
    "aten::upsample_nearest2d.vec", "aten::upsample_nearest3d", "aten::upsample_nearest3d.vec",
    "aten::_upsample_nearest_exact1d", "aten::_upsample_nearest_exact1d.vec",
    "aten::_upsample_nearest_exact2d", "aten::_upsample_nearest_exact2d.vec",
    "aten::_upsample_nearest_exact3d", "aten::_upsample_nearest_exact3d.vec",
    "aten::upsample_linear1d", "aten::upsample_linear1d.vec", "aten::upsample_bilinear2d",
    "aten::upsample_bilinear2d.vec", "aten::upsample_trilinear3d", "aten::upsample_trilinear3d.vec",
    "aten::upsample_bicubic2d", "aten::upsample_bicubic2d.vec", "aten::_upsample_bilinear2d_aa",
    "aten::_upsample_bilinear2d_aa.vec", "aten::_upsample_bicubic2d_aa",
    "aten::_upsample_bicubic2d_aa.vec", "wick::upsample", "wick::upsample_gradient",
    // Gradients of layers that end in those.
    "aten::max_pool2d_with_indices_backward", "aten::max_pool3d_with_indices_backward",
    "aten::adaptive_max_pool2d_backward", "aten::adaptive_max_pool3d_backward",
    "aten::fractional_max_pool2d_backward", "aten::fractional_max_pool3d_backward",
    "aten::avg_pool2d_backward", "aten::avg_pool3d_backward", "aten::_adaptive_avg_pool2d_backward",
    "aten::_adaptive_avg_pool3d_backward", "aten::nll_loss_backward", "aten::nll_loss2d_backward",
    "aten::_no_grad_embedding_renorm_",
    // Copies and the in-place forms of gradients' scales.
    "aten::_amp_foreach_non_finite_check_and_unscale", "aten::_amp_update_scale",
    // Attention and recurrent layers.
    "aten::_scaled_dot_product_attention", "aten::_scaled_dot_product_attention_math",
    "aten::scaled_dot_product_attention", "aten::_native_multi_head_attention", "wick::lstm_layer",
    "wick::lstm_layer_gradient", "aten::pad_sequence", "aten::lstm.input", "aten::gru.input",
    "aten::rnn_tanh.input", "aten::rnn_relu.input", "aten::lstm_cell", "aten::gru_cell",
    "aten::rnn_tanh_cell", "aten::rnn_relu_cell",
    // Losses without a loop form.
    "aten::hinge_embedding_loss", "aten::cosine_embedding_loss", "aten::triplet_margin_loss",
    "aten::_safe_softmax", "aten::_masked_softmax", "aten::_add_relu.Tensor",
    "aten::_add_relu.Scalar",
    // Functions of elements and of weights.
    "aten::prelu", "aten::logit", "aten::mvlgamma", "aten::polygamma", "aten::round.decimals",
    "aten::norm_except_dim", "aten::polygamma_", "aten::special_polygamma",
    "aten::special_multigammaln", "aten::special_logit", "aten::special_round",
    "aten::log_sigmoid_forward", "aten::affine_grid_generator", "aten::_trilinear",
    "aten::_euclidean_dist", "aten::_transform_bias_rescale_qkv", "prim::abs", "aten::_weight_norm",
    "aten::_weight_norm_interface", "aten::sum_to_size", "aten::flatten_dense_tensors",
    "aten::unflatten_dense_tensors", "aten::_debug_has_internal_overlap",
    // Layouts, copies, fills.
    "aten::clone", "aten::zero", "aten::fill.Scalar", "aten::fill_diagonal_", "aten::zeros_like",
    "aten::ones_like", "aten::full_like", "aten::_no_grad_fill_", "aten::_no_grad_zero_",
    "aten::_cast_Byte", "aten::_cast_Char", "aten::_cast_Double", "aten::_cast_Float",
    "aten::_cast_Int", "aten::_cast_Long", "aten::_cast_Short", "aten::_cast_Half", "aten::lift",
    "aten::lift_fresh_copy", "aten::reshape", "aten::flatten.using_ints", "aten::ravel",
    "aten::tile", "aten::repeat", "aten::repeat_interleave.Tensor",
    "aten::repeat_interleave.self_Tensor", "aten::repeat_interleave.self_int", "aten::roll",
    "aten::rot90", "aten::fliplr", "aten::flipud", "aten::hstack", "aten::vstack", "aten::dstack",
    "aten::column_stack", "aten::row_stack", "aten::meshgrid", "aten::meshgrid.indexing",
    "aten::cartesian_prod", "aten::block_diag", "aten::one_hot", "aten::broadcast_tensors",
    "aten::atleast_1d", "aten::atleast_1d.Sequence", "aten::atleast_2d",
    "aten::atleast_2d.Sequence", "aten::atleast_3d", "aten::atleast_3d.Sequence",
    "aten::_foreach_norm.Scalar", "aten::_foreach_zero", "aten::_foreach_zero_",
    "aten::pixel_shuffle", "aten::pixel_unshuffle", "aten::channel_shuffle",
    "aten::native_channel_shuffle", "aten::unsafe_chunk", "aten::unsafe_split.Tensor",
    "aten::unsafe_split_with_sizes", "aten::data", "aten::set.source_Tensor", "aten::_conj_copy",
    "aten::_neg_view_copy", "aten::_saturate_weight_to_fp16", "aten::alias_copy",
    "aten::detach_copy", "aten::view_copy", "aten::_reshape_alias_copy", "aten::squeeze_copy",
    "aten::squeeze_copy.dim", "aten::squeeze_copy.dims", "aten::view_as_real_copy",
    "aten::view_as_complex_copy", "aten::_unsafe_view", "aten::to_dense", "aten::resize",
    "aten::resize_as", "aten::unsqueeze_copy", "aten::transpose_copy.int", "aten::t_copy",
    "aten::permute_copy", "aten::expand_copy", "aten::select_copy.int", "aten::slice_copy.Tensor",
    "aten::narrow_copy", "aten::diagonal_copy", "aten::as_strided_copy", "aten::unfold_copy",
    "aten::unbind_copy.int", "aten::split_copy.Tensor", "aten::split_with_sizes_copy",
    "aten::_chunk_cat", "aten::_unsafe_masked_index", "aten::_unsafe_masked_index_put_accumulate",
    "aten::nonzero_static",
    // Ordering, looking up and counting.
    "aten::sort", "aten::argsort", "aten::argsort.stable", "aten::msort", "aten::bucketize.Tensor",
    "aten::bucketize.Scalar", "aten::searchsorted.Tensor", "aten::searchsorted.Scalar",
    "aten::histogram.bins_tensor", "aten::histogram.bin_ct", "aten::histogramdd",
    "aten::histogramdd.int_bins", "aten::histogramdd.TensorList_bins",
    "aten::_histogramdd_from_bin_tensors", "aten::_histogramdd_from_bin_cts",
    "aten::_histogramdd_bin_edges", "prim::view_copy", "prim::reshape_copy", "prim::expand_copy",
    "prim::expand_as_copy", "prim::squeeze_copy", "prim::squeeze_copy.dim", "prim::unsqueeze_copy",
    "aten::squeeze_", "aten::squeeze_.dim", "aten::squeeze_.dims", "aten::unsqueeze_",
    "aten::transpose_", "aten::swapaxes_", "aten::swapdims_", "aten::t_", "aten::as_strided_",
    "aten::detach_", "aten::resize_", "aten::copy_.int", "aten::copy_.float",
    "aten::requires_grad_"};

// Where the general kernel, which is faster, has no loop form for the arguments. Pointwise operators
// come to runtime/kernels/pointwise.h; those whose records name a definition need not be listed.
constexpr const char* kDeviceNeutralLast[] = {"aten::constant_pad_nd",
                                              "aten::instance_norm",
                                              "aten::relu6",
                                              "aten::log_sigmoid",
                                              "aten::elu",
                                              "aten::selu",
                                              "aten::celu",
                                              "aten::gelu",
                                              "aten::rsub.Tensor",
                                              "aten::rsub.Scalar",
                                              "aten::div.Tensor_mode",
                                              "aten::div.Scalar_mode",
                                              "aten::floor_divide",
                                              "aten::floor_divide.Scalar",
                                              "aten::floor_divide_.Tensor",
                                              "aten::remainder.Tensor",
                                              "aten::remainder.Scalar",
                                              "aten::remainder.Scalar_Tensor",
                                              "aten::fmod.Tensor",
                                              "aten::fmod.Scalar",
                                              "aten::pow.Tensor_Tensor",
                                              "aten::pow.Tensor_Scalar",
                                              "aten::pow.Scalar",
                                              "aten::pow_.Tensor",
                                              "aten::pow_.Scalar",
                                              "aten::float_power.Tensor_Tensor",
                                              "aten::float_power.Tensor_Scalar",
                                              "aten::float_power.Scalar",
                                              "aten::float_power_.Tensor",
                                              "aten::float_power_.Scalar",
                                              "aten::ldexp.Tensor",
                                              "aten::ldexp_",
                                              "aten::sgn",
                                              "aten::square",
                                              "aten::ceil",
                                              "aten::floor",
                                              "aten::trunc",
                                              "aten::round",
                                              "aten::clamp",
                                              "aten::clamp.Tensor",
                                              "aten::clamp_min",
                                              "aten::clamp_max",
                                              "aten::nan_to_num",
                                              "aten::deg2rad",
                                              "aten::rad2deg",
                                              "aten::logsumexp",
                                              "aten::polar",
                                              "aten::pairwise_distance",
                                              "aten::cosine_similarity",
                                              "aten::glu",
                                              "aten::_softmax_backward_data",
                                              "aten::_log_softmax_backward_data",
                                              "aten::cat",
                                              "aten::_cat",
                                              "aten::stack",
                                              "aten::_stack",
                                              "aten::linalg_vector_norm",
                                              "aten::linalg_norm",
                                              "aten::linalg_norm.ord_str",
                                              "aten::norm.Scalar",
                                              "aten::native_norm",
                                              "aten::native_norm.ScalarOpt_dim_dtype",
                                              "aten::norm.ScalarOpt_dim",
                                              "aten::norm.ScalarOpt_dim_dtype",
                                              "aten::norm.ScalarOpt_dtype",
                                              "aten::frobenius_norm",
                                              "aten::frobenius_norm.dim",
                                              "aten::dist",
                                              "aten::l1_loss"};

constexpr const char* kDeviceNeutralMixed[] = {
    // Numbers that are laid out on the CPU and copied to their destination.
    "aten::arange.out", "aten::arange.start_out", "aten::range.out", "aten::linspace.out",
    "aten::logspace.out", "aten::eye.out", "aten::eye.m_out", "aten::zeros.out", "aten::ones.out",
    "aten::full.out", "aten::rand.out", "aten::randn.out", "aten::randint.out",
    "aten::randint.low_out", "aten::randperm.out", "aten::normal.float_float_out",
    // Lengths are read on the CPU, as PyTorch demands of its callers.
    "aten::_pack_padded_sequence", "aten::_pad_packed_sequence", "aten::lstm.data",
    "aten::gru.data", "aten::rnn_tanh.data", "aten::rnn_relu.data", "aten::ctc_loss.IntList",
    "aten::ctc_loss.Tensor", "aten::_ctc_loss.Tensor",
    // Lists of tensors.
    "aten::count.Tensor", "aten::remove.Tensor", "aten::index.list_Tensor", "aten::eq.Tensor_list",
    "aten::ne.Tensor_list", "aten::sort.Tensor", "aten::sorted.Tensor",
    // Walks back over recorded calls, each of which is a call of its own.
    "aten::grad", "aten::backward", "aten::backward.TensorList", "aten::output_nr", "prim::grad",
    "wick::checkpoint", "wick::custom_function", "aten::select_backward", "aten::slice_backward",
    "aten::diagonal_backward", "aten::as_strided_backward",
    // Copies from one device to another.
    "aten::copy", "aten::copy_", "aten::copy_.Tensor", "aten::to.device", "aten::to.dtype",
    "aten::to.other", "aten::to.dtype_layout", "aten::to.prim_Device", "aten::to.prim_dtype",
    "aten::to.prim_other", "aten::_to_copy", "aten::_autocast_to_full_precision",
    "aten::_autocast_to_reduced_precision", "aten::type_as", "aten::cpu", "aten::cuda",
    "aten::set_data", "aten::resize_as_", "aten::empty_like", "aten::new_empty",
    "aten::new_empty_strided", "aten::new_zeros", "aten::new_ones", "aten::new_full", "aten::set_",
    "aten::set_.source_Tensor", "aten::set_.source_Tensor_storage_offset", "aten::as_tensor",
    "aten::expand_as", "aten::view_as", "aten::reshape_as", "aten::fill.Tensor",
    // What reads one element reads it from wherever it is.
    "aten::item", "aten::_assert_async", "aten::_tensor_to_list", "aten::_reshape_from_tensor",
    "aten::_local_scalar_dense", "aten::is_nonzero", "aten::Int.Tensor", "aten::Float.Tensor",
    "aten::Bool.Tensor", "aten::Complex.Tensor", "aten::Complex.Tensor_Tensor",
    "aten::Complex.Tensor_int", "aten::Complex.Tensor_float", "aten::Complex.Tensor_bool",
    "aten::Complex.int_Tensor", "aten::Complex.float_Tensor", "aten::Complex.bool_Tensor",
    "aten::IntImplicit", "aten::FloatImplicit", "aten::ComplexImplicit", "aten::ScalarImplicit",
    "aten::_assert_async.msg",
    // Segments lie on the CPU.
    "wick::segment_bounds",
    // Sizes and the like.
    "aten::numel", "aten::dim", "aten::size.int", "aten::size", "aten::stride.int", "aten::stride",
    "aten::storage_offset", "aten::element_size", "aten::len.Tensor", "aten::get_device",
    "aten::_shape_as_tensor", "aten::is_contiguous", "aten::is_contiguous.memory_format",
    "aten::is_non_overlapping_and_dense", "aten::is_floating_point", "aten::is_complex",
    "aten::is_signed", "aten::is_same_size", "aten::is_set_to", "aten::is_conj", "aten::is_neg",
    "aten::is_inference", "aten::is_distributed", "aten::is_strides_like_format",
    "aten::is_coalesced", "aten::is_pinned", "aten::result_type.Tensor", "aten::equal",
    "aten::isclose", "aten::allclose", "aten::detach", "aten::retain_grad", "aten::retains_grad",
    "aten::is_leaf", "aten::result_type.Scalar", "aten::result_type.Scalar_Tensor",
    "aten::_version", "aten::_is_zerotensor", "aten::_has_same_storage_numel", "prim::layout",
    "prim::nbytes", "prim::is_sparse", "prim::is_sparse_csr", "prim::dtype", "prim::device",
    "prim::data", "aten::_dim_arange", "aten::_assert_tensor_metadata"};

// Operators on lists of tensors call those on one tensor for each.
std::vector<const char*> ofLists() {
  // Kept as long as the process: tables hold the names.
  static std::deque<std::string>& names = *new std::deque<std::string>;
  std::vector<const char*> all;
  const auto add = [&](std::string_view name, std::initializer_list<const char*> overloads) {
    for (const char* overload : overloads) {
      for (const char* form : {"", "_"}) {
        names.push_back("aten::_foreach_" + std::string(name) + form + overload);
        all.push_back(names.back().c_str());
      }
    }
  };
  for (const char* unary : {"abs",     "acos",  "asin",  "atan",  "ceil",  "cos",        "cosh",
                            "erf",     "erfc",  "exp",   "expm1", "floor", "frac",       "lgamma",
                            "log",     "log10", "log1p", "log2",  "neg",   "reciprocal", "round",
                            "sigmoid", "sin",   "sinh",  "sqrt",  "tan",   "tanh",       "trunc"}) {
    add(unary, {""});
  }
  for (const char* binary : {"add", "sub", "mul", "div"}) {
    add(binary, {".Scalar", ".List", ".ScalarList"});
  }
  for (const char* extreme : {"maximum", "minimum"}) add(extreme, {".List"});
  for (const char* ternary : {"addcdiv", "addcmul"}) add(ternary, {".Scalar", ".ScalarList"});
  return all;
}

const RegisterDeviceNeutral of_lists(TableRule::OneDevice, ofLists());
const RegisterDeviceNeutral one_device(TableRule::OneDevice, kOneDevice);
const RegisterDeviceNeutral kDeviceNeutralLastRegistered(TableRule::Last, kDeviceNeutralLast);
const RegisterDeviceNeutral kDeviceNeutralMixedRegistered(TableRule::Mixed, kDeviceNeutralMixed);

}  // namespace

}  // namespace wick::ops
