"""The dtypes by name, and sets of them.

>>> from weft import dtypes
>>> dtypes.float32.bits, dtypes.float32 in dtypes.floats
(32, True)
"""

from weft._core import DType

void = DType("void")
bool = DType("bool")
int8 = DType("int8")
int16 = DType("int16")
int32 = DType("int32")
int64 = DType("int64")
uint8 = DType("uint8")
uint16 = DType("uint16")
uint32 = DType("uint32")
uint64 = DType("uint64")
float8_e4m3 = DType("float8_e4m3")
float8_e5m2 = DType("float8_e5m2")
float16 = DType("float16")
bfloat16 = DType("bfloat16")
float32 = DType("float32")
float64 = DType("float64")
index = DType("index")  # exact integers for sizes and offsets

signed_ints = (int8, int16, int32, int64)
unsigned_ints = (uint8, uint16, uint32, uint64)
ints = signed_ints + unsigned_ints
floats = (float8_e4m3, float8_e5m2, float16, bfloat16, float32, float64)
all = (bool, *ints, *floats, index)
