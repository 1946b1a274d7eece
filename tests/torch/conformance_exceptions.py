"""What the runner of TorchCTS does not claim for device weft, and which of its tests fail, with a reason each."""

# Capabilities, as its manifest names them.
NOT_CLAIMED = {
    "nested": "the device has no nested tensors",
    "named_tensor": "PyTorch 2.13 has no names of axes",
    "native_quantization": "tensors of the device are not quantised",
    "guard_alloc": "addresses of the device are not dereferenced: there is no memory beside a tensor to guard",
}

# Parts of the names of tests.
FAILING = {
    "test_stride_and_storage_offset_metadata": "holds only where cpu() gives the tensor itself: a copy of a view with gaps has "
                                               "none, on any device",
    "test_embedding_bag_scale_grad_by_frequency_contract": "its reference is not what PyTorch's CPU gives, and the device does",
    "test_rrelu_train_false_variants": "it compares noise that nobody wrote",
    "test_oom_recovery": "a value that cannot be computed raises when it is read, not when it is waited for",
}
