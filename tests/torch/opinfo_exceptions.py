"""What the runner of OpInfos does not ask of device weft, and why. Names are those of OpInfos."""

# Their values are whatever memory held: shapes, dtypes and strides are compared.
UNINITIALISED = {
    "empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided", "resize_", "resize_as_",
}

# weft has a generator of its own: shapes and dtypes are compared with the CPU's, and values with a second run.
RANDOM = {
    "bernoulli", "cauchy", "exponential", "geometric", "log_normal", "multinomial", "nn.functional.alpha_dropout",
    "nn.functional.dropout", "nn.functional.dropout2d", "nn.functional.dropout3d",
    "nn.functional.feature_alpha_dropout.with_train", "nn.functional.fractional_max_pool2d",
    "nn.functional.fractional_max_pool3d", "nn.functional.rrelu", "nn.functional.scaled_dot_product_attention", "normal",
    "normal.in_place", "normal.number_mean", "pca_lowrank", "rand_like", "randint", "randint_like", "randn", "randn_like",
    "svd_lowrank", "uniform", "nn.functional.multi_head_attention_forward",
}

# Their further arguments PyTorch wants on the CPU, whatever device the first is on.
CPU_ARGUMENTS = {"tensor_split"}

# Into outputs that are not as it expects PyTorch's CPU writes past the end of memory.
WRITES_PAST = {"narrow_copy", "nn.functional.avg_pool3d", "lu_unpack", "linalg.lu"}

# They name elements, and do not say which among equal ones: where a sample has such, these are compared. With the place
# of their argument dim; None: they give no indices.
TIES = {"sort": 0, "argsort": 0, "topk": 1, "kthvalue": 1, "mode": 0, "msort": None}

# Some of their gradients are 0 as differences of numbers that were rounded: errors of narrow floats are compared with the
# largest of the CPU's in the tensor, not with that of the same element, at which the CPU's may cancel.
CANCELLED = {"nn.functional.normalize"}

# Wrong samples raise on the device, too, with another type or text.
OTHER_ERRORS = {
    "gather": "an index out of range is an IndexError, when a value is asked for",
    "scatter": "as gather",
    "scatter_add": "as gather",
    "linalg.cross": "PyTorch's own function of shapes says it otherwise",
    "narrow_copy": "PyTorch has a kernel of its own, and its own checks, on the CPU alone",
    "nn.functional.multi_margin_loss": "PyTorch's decomposition says it otherwise",
    "nn.functional.multilabel_margin_loss": "as multi_margin_loss",
}

# The process ends, or the CPU's answer is not one to compare with.
CPU_WRONG: dict[str, str] = {
    "sparse.mm.reduce": "the process crashed, or did not come back",
    "fft.ihfftn": "with out= and one axis PyTorch leaves out as it was: the arguments of conj_physical_out are exchanged",
    "fft.ihfft2": "as fft.ihfftn",
}
