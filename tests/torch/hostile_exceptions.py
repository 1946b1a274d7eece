"""What the runner of hostile calls does not ask of device weft, and why. Names are patterns of operators' names."""

# They are not called.
NOT_CALLED = (
    "_copy_from", "_copy_from_and_resize",  # parts of copy_: PyTorch's CPU has none
    "*_overrideable", "*_overrideable_backward",  # as these
    "_fused_sdp_choice",  # says which kernel is taken
    "_nested_tensor_from_mask_left_aligned",  # says that there are no nested tensors
    "_reshape_alias",  # trusts its arguments: on the CPU it reads past its memory
)

# weft has a generator of its own: shapes and dtypes are compared.
RANDOM = ("bernoulli", "cauchy", "exponential", "geometric", "log_normal", "multinomial", "native_dropout", "normal", "random",
          "randperm", "rrelu_with_noise", "uniform")

# Their values are whatever memory held.
NO_VALUES = ("empty", "empty_strided", "resize", "set")

UNSIGNED = "PyTorch's CPU has few kernels for the wider unsigned integers; weft computes with them"
NARROW = "PyTorch's CPU has no kernel of this function for narrow floats"
VALUES = "the CPU looks at the values of a tensor; weft does not wait for them"
NO_TWIN = "PyTorch's CPU has no such operator"
ASSERTS = "the CPU fails in an assertion of its own"
UNCHECKED = "the CPU does not look whether its operands fit each other, and reads what lies beside them"
NO_ELEMENTS = "the CPU looks at no argument where there are no elements"
WRITES_PAST = "the CPU does not look whether its outputs fit, and writes past them"
TIES = "which of equal elements is named is not said"
INNER = "an output that only the CPU's own gradient reads"
NOT_ASKED = "an output that was not asked for"
UNSORTED = "the sequence is not sorted"
NOT_ITS_OWN = "indices or results that no forward call gave"
OUTSIDE = "an option outside its range, which the CPU takes for another"
EXTREME = "numbers at the end of what the dtype holds"

# (operator, kind, what is said, reason)
EXCEPTIONS: tuple[tuple[str, str, str, str], ...] = (
    ("*", "computes", "not implemented for 'UInt", UNSIGNED),
    ("*", "computes", "Promotion for uint16, uint32, uint64", UNSIGNED),
    ("special_*", "computes", "not implemented for 'Half'", NARROW),
    ("special_*", "computes", "not implemented for 'BFloat16'", NARROW),
    ("*", "computes", "Could not run 'aten::", NO_TWIN),
    ("*", "computes", "INTERNAL ASSERT FAILED", ASSERTS),
    ("*bernoulli*", "computes", "p_in >= 0 && p_in <= 1", VALUES),
    ("binary_cross_entropy*", "computes", "all elements of input should be between 0 and 1", VALUES),
    ("max_unpool*", "computes", "Found an invalid max index", VALUES),
    ("*", "memory", "", "larger than memory"),
    ("*batch_norm*", "raises", "", UNCHECKED),
    ("_fused_rms_norm*", "raises", "", UNCHECKED),
    ("_fused_*_*", "raises", "a step of", UNCHECKED),
    ("_fused_*_*", "raises", "a tensor of a step", UNCHECKED),
    ("_transformer_encoder_layer_fwd", "raises", "", NO_ELEMENTS),
    ("_embedding_bag*", "raises", "", UNCHECKED),
    ("*_softmax_backward_data*", "raises", "", UNCHECKED),
    ("_cdist_backward", "raises", "", UNCHECKED),
    ("_pdist_*", "raises", "", UNCHECKED),
    ("*_backward*", "raises", "the gradient has shape", UNCHECKED),
    ("*_backward*", "raises", "does not fit an input of", UNCHECKED),
    ("max_pool3d_with_indices_backward*", "raises", "", UNCHECKED),
    ("_cum*_helper", "raises", "", WRITES_PAST),
    ("cum*", "raises", "Dimension out of range", NO_ELEMENTS),
    ("bernoulli*", "raises", "not implemented for", NO_ELEMENTS),
    ("reflection_pad2d*", "raises", "", NO_ELEMENTS),
    ("slice_backward", "raises", "", UNCHECKED),
    ("*_loss*", "raises", "is not a reduction", OUTSIDE),
    ("binary_cross_entropy_with_logits", "raises", "is not a reduction", OUTSIDE),
    ("hardtanh*", "raises", "min_val greater than max_val", "as PyTorch's torch.nn.functional.hardtanh raises"),
    ("polygamma*", "raises", "n is at most", "a derivative that no dtype holds"),
    ("equal", "raises", "Expected object of data type", "as the CPU raises for tensors with other shapes"),
    ("empty.memory_format", "raises", "pinned", "memory of the device is not pinned"),
    ("_logcumsumexp.out", "raises", "Expected out tensor to have dtype", WRITES_PAST),
    ("*out", "raises", "Expected out tensor to have dtype", "structured operators give out= their own dtype; the CPU casts"),
    ("topk*", "differs", "", TIES),
    ("kthvalue*", "differs", "", TIES),
    ("_embedding_bag", "differs", "", INNER),
    ("_embedding_bag_forward_only", "differs", "", INNER),
    ("log_sigmoid_forward*", "differs", "", INNER),
    ("log_sigmoid_backward*", "differs", "", NOT_ITS_OWN),
    ("native_dropout", "differs", "of torch.bool instead of", INNER),
    ("unique_dim*", "differs", "of torch.int64 instead of", NOT_ASKED),
    ("bucketize*", "differs", "", UNSORTED),
    ("searchsorted*", "differs", "", UNSORTED),
    ("*max_pool*_backward*", "differs", "", NOT_ITS_OWN),
    ("*_softmax_backward_data*", "differs", "", NOT_ITS_OWN),
    ("_cum*_helper", "differs", "", WRITES_PAST),
    ("grid_sampler_2d*", "differs", "", OUTSIDE),
    ("upsample_*", "differs", "", OUTSIDE),
    ("slice_backward", "differs", "", NOT_ITS_OWN),
    ("polygamma*", "differs", "", "poles: the CPU gives large numbers"),
    ("logit*", "differs", "", OUTSIDE),
    ("huber_loss_backward*", "differs", "", OUTSIDE),
    ("mse_loss_backward*", "differs", "", OUTSIDE),
    ("binary_cross_entropy*", "differs", "", OUTSIDE),
    ("native_group_norm_backward", "differs", "", UNCHECKED),  # reads an input with gaps as if it had none
    ("_pdist_forward", "differs", "", EXTREME),
    ("sub*", "differs", "", EXTREME),
    ("rsub*", "differs", "", EXTREME),
    ("add*mm*", "differs", "", EXTREME),
    ("normal.*_out", "differs", "instead of", "the CPU leaves an output of no elements as it was"),
    ("rrelu_with_noise.out", "differs", "instead of", "the CPU leaves its output as it was"),
)
