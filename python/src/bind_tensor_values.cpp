// Between tensors and Python's values: data in, arrays and numbers out, what is run for them.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "convert.h"
#include "core.h"
#include "host_memory.h"
#include "interpreter.h"
#include "rewrite/pattern.h"
#include "runtime/device.h"
#include "tensor.h"
#include "tensor/promote.h"
#include "weft/counters.h"
#include "weft/dtype.h"
#include "weft/error.h"
#include "weft/scheduled_kernel.h"
#include "weft/tensor.h"
#include "weft/view.h"

namespace weft::python {
namespace {

// Of more elements printing shows the shape alone.
constexpr int64_t kMostShown = 64;

nb::module_ arrays() { return nb::module_::import_("weft._arrays"); }

// The elements in a NumPy array that cannot be written: in the tensor's own memory where that is
// memory of the process. The array holds it, so that later writes go elsewhere.
nb::object array_of(const Tensor& x) {
  auto* const seen = new HostMemory(host_memory_of(x, HostMemory::kShared));
  const nb::capsule owner(seen, [](void* p) noexcept { delete static_cast<HostMemory*>(p); });
  const nb::ndarray<nb::numpy, const uint8_t, nb::ndim<1>> flat(seen->first, {seen->bytes}, owner);
  return arrays().attr("array_of_bytes")(flat, x.dtype(), tuple_of_ints(seen->view.shape),
                                         seen->view.offset, tuple_of_ints(seen->view.strides));
}

nb::object item_of(const Tensor& x) {
  const Tensor mine = x.snapshot();
  Element element;
  {
    const InterpreterReleased release;
    element = mine.item();
  }
  return number_of_bits(element.dtype, element.bits);
}

nb::object list_of(const Tensor& x) {
  const bool is_narrow =
      x.dtype().is_float() && x.dtype().bits() < 32;  // NumPy has not all of them
  return array_of(is_narrow ? x.cast(dtypes::float32) : x).attr("tolist")();
}

std::vector<Tensor*> tensors_of(std::string_view what, nb::handle self, const nb::args& others) {
  std::vector<Tensor*> tensors = {as_tensor(self)};
  for (const nb::handle h : others) {
    Tensor* const t = as_tensor(h);
    if (t == nullptr) {
      type_error(fmt::format("[{}] a Tensor is needed, not {}", what, type_text(h)));
    }
    tensors.push_back(t);
  }
  return tensors;
}

// Handles change under the interpreter's lock; what runs without it has copies of them.
nb::object realize_all(nb::handle self, const nb::args& others, bool) {
  const std::vector<Tensor*> tensors = tensors_of("realize", self, others);
  for (Tensor* t : tensors) t->leave_rest();
  std::vector<Tensor> copies;
  std::vector<Tensor*> pointers;
  copies.reserve(tensors.size());
  for (const Tensor* t : tensors) copies.push_back(*t);
  pointers.reserve(copies.size());
  for (Tensor& t : copies) pointers.push_back(&t);
  {
    const InterpreterReleased release;
    Tensor::realize(pointers);
  }
  return nb::borrow(self);
}

// Handles to look at while other threads run.
class Snapshots {
 public:
  Snapshots(const char* method, nb::handle self, const nb::args& others) {
    copies_.reserve(others.size() + 1);
    pointers_.reserve(others.size() + 1);
    for (const Tensor* t : tensors_of(method, self, others)) copies_.push_back(t->snapshot());
    for (const Tensor& t : copies_) pointers_.push_back(&t);
  }
  std::span<const Tensor* const> tensors() const { return pointers_; }

 private:
  std::vector<Tensor> copies_;
  std::vector<const Tensor*> pointers_;
};

std::vector<ScheduledKernel> schedule_all(nb::handle self, const nb::args& others) {
  const Snapshots snapshots("schedule", self, others);
  const InterpreterReleased release;
  return Tensor::schedule(snapshots.tensors());
}

size_t kernel_count_all(nb::handle self, const nb::args& others) {
  const Snapshots snapshots("kernel_count", self, others);
  const InterpreterReleased release;
  return Tensor::kernel_count(snapshots.tensors());
}

void bind_scheduled_kernel(nb::module_& m) {
  using Kernel = ScheduledKernel;
  nb::class_<Kernel>(m, "ScheduledKernel", "A kernel that a realise would run: Tensor.schedule().")
      .def_ro("name", &Kernel::name, "What it does, for people.")
      .def_ro("graph", &Kernel::graph, "Its nodes as text, which weft.ir.parse reads back.")
      .def_ro("buffers", &Kernel::buffers, "The number of its arguments.")
      .def_ro("bytes", &Kernel::bytes, "The bytes of its arguments.")
      .def_ro("flops", &Kernel::flops, "Its operations, as weft.counters counts them.")
      .def_ro("source", &Kernel::source, "The text that is compiled; none where there is none.")
      .def("__repr__", [](const Kernel& k) {
        return fmt::format("ScheduledKernel(name='{}', buffers={}, bytes={}, flops={})", k.name,
                           k.buffers, k.bytes, k.flops);
      });
}

std::string repr(const Tensor& x) {
  std::string text = fmt::format("Tensor(shape={}, dtype={}, device={}",
                                 nb::cast<std::string>(nb::repr(tuple_of_ints(x.shape()))),
                                 x.dtype().name(), x.device());
  if (x.numel() <= kMostShown) {
    text += fmt::format(", values={}", nb::cast<std::string>(nb::repr(list_of(x))));
  }
  if (x.requires_grad()) text += ", requires_grad=True";
  return text + ")";
}

bool truth(const Tensor& x) {
  if (x.numel() != 1) {
    throw ShapeError(
        fmt::format("[bool] a tensor of {} elements is neither true nor false: any() "
                    "and all() are",
                    x.numel()));
  }
  return PyObject_IsTrue(item_of(x).ptr()) == 1;
}

// weft.counters is the one object of this class.
struct CountersView {};

void bind_counters(nb::module_& m) {
  nb::class_<CountersView>(m, "Counters", R"(What weft has run since the start, or since reset().

>>> from weft import counters
>>> counters.reset()
>>> a = Tensor([1, 2]) + 1
>>> counters.kernels
0
>>> a.tolist(), counters.kernels
([2, 3], 1)
)")
      .def_prop_ro(
          "kernels", [](const CountersView&) { return counters().kernels; }, "Kernels run.")
      .def_prop_ro(
          "bytes", [](const CountersView&) { return counters().bytes; },
          "The bytes of their arguments.")
      .def_prop_ro(
          "flops", [](const CountersView&) { return counters().flops; },
          R"(Their elementwise operations on data: an addition is 1, a division or a square root 4, an
exponential, logarithm, sine or integer division 8. A reduction is one per element.

>>> from weft import counters
>>> counters.reset()
>>> (Tensor([1.0, 2.0, 3.0]) * 2).sum().item(), counters.flops
(12.0, 6)
)")
      .def_prop_ro(
          "schedules", [](const CountersView&) { return counters().schedules; },
          R"(Schedules that were made or read from disk, because none that is in memory served.

>>> from weft import counters
>>> squares = lambda n: (Tensor.arange(n) ** 2).sum().item()
>>> squares(7)
91
>>> counters.reset()
>>> squares(7), counters.schedules
(91, 0)
)")
      .def_prop_ro(
          "lowered", [](const CountersView&) { return counters().lowered; },
          "Kernels of the CPU that were turned into a program's text.")
      .def_prop_ro(
          "compiled", [](const CountersView&) { return counters().compiled; },
          "Texts that a compiler of the CPU ran for: no code of them was in memory or on disk.")
      .def(
          "time_phases", [](const CountersView&, bool on) { time_phases(on); },
          nb::arg("on") = true,
          "Whether `seconds` counts from now on: a warm realise takes a few microseconds.")
      .def_prop_ro(
          "seconds",
          [](const CountersView&) {
            nb::dict seconds;
            for (const auto& [name, value] : phase_seconds()) seconds[name.c_str()] = value;
            return seconds;
          },
          nb::sig("def seconds(self) -> dict[str, float]"),
          R"(Where the CPU time of realising went, by phase, where time_phases() was called: that of threads
that compile, too, and not that of threads that help to run a kernel.

>>> from weft import counters
>>> list(counters.seconds)
['import', 'lookup', 'roll', 'rangeify', 'split', 'lower', 'compile', 'bind', 'run']
)")
      .def_prop_ro(
          "cached_bytes",
          [](const CountersView&) {
            nb::dict bytes;
            for (const auto& [name, count] : cached_bytes()) bytes[name.c_str()] = count;
            return bytes;
          },
          nb::sig("def cached_bytes(self) -> dict[str, int]"),
          R"(The memory of the process's caches, by name: schedules, families of them (which serve other
sizes and scalars), and compiled kernels of the CPU. Together they stay within a bound
(WEFT_MEMORY_CACHE_MB, 512 unless set): what was used least recently goes first.

>>> from weft import counters
>>> (Tensor([1.0, 2.0]) * 3).tolist()
[3.0, 6.0]
>>> counters.cached_bytes["schedules"] > 0
True
)")
      .def(
          "set_most_cached_bytes",
          [](const CountersView&, int64_t bytes) { return set_most_cached_bytes(bytes); },
          nb::arg("bytes"),
          R"(Sets the bound of cached_bytes; returns the one before.

>>> from weft import counters
>>> before = counters.set_most_cached_bytes(64 << 20)
>>> counters.set_most_cached_bytes(before)
67108864
)")
      .def_prop_ro(
          "live_values", [](const CountersView&) { return live().values; },
          "Results of operations that something still holds, computed or not; reset() leaves it.")
      .def_prop_ro(
          "live_bytes", [](const CountersView&) { return live().bytes; },
          R"(The memory that tensors, and what they are computed from, hold; reset() leaves it.

>>> from weft import counters
>>> before = counters.live_bytes
>>> a = Tensor.zeros(1000).realize()
>>> counters.live_bytes - before
4000
)")
      .def(
          "reset", [](const CountersView&) { reset_counters(); }, "Counts from 0.")
      .def("__repr__", [](const CountersView&) {
        const Counters c = counters();
        return fmt::format("Counters(kernels={}, bytes={}, flops={}, schedules={})", c.kernels,
                           c.bytes, c.flops, c.schedules);
      });
  m.attr("counters") = nb::cast(CountersView{});
}

// A short list of plain ints, without a detour by arrays.
std::optional<Tensor> few_ints(nb::handle value, std::string_view device) {
  constexpr Py_ssize_t most = 64;
  if (!PyList_Check(value.ptr())) return {};
  const Py_ssize_t count = PyList_GET_SIZE(value.ptr());
  if (count == 0 || count > most) return {};
  std::vector<int32_t> ints;
  ints.reserve(size_t(count));
  for (Py_ssize_t i = 0; i < count; i++) {
    PyObject* const item = PyList_GET_ITEM(value.ptr(), i);
    if (!PyLong_CheckExact(item)) return {};
    int overflow = 0;
    const long number = PyLong_AsLongAndOverflow(item, &overflow);
    if (overflow != 0 || number != int32_t(number)) return {};
    ints.push_back(int32_t(number));
  }
  return Tensor::from<int32_t>(ints, {int64_t(count)}, device);
}

}  // namespace

Tensor tensor_of_data(nb::handle data, std::optional<DType> dtype, std::string_view device) {
  if (const Tensor* t = as_tensor(data)) {
    if (!device.empty() && device != t->device()) {
      throw DeviceError(
          fmt::format("[tensor] from {} to {}: tensors stay on their device", t->device(), device));
    }
    const Tensor copy = t->clone();
    return dtype ? copy.cast(*dtype) : copy;
  }
  if (const std::optional<Number> number = as_number(data)) {
    const bool is_numpy = std::string_view(type_text(data)).starts_with("numpy.");
    if (!is_numpy || dtype) {
      check_fits("tensor", dtype.value_or(dtype_of_number(*number)), *number);
      return Tensor::full({}, *number, dtype, device);
    }
  }
  if (dtype.value_or(default_int()) == dtypes::int32) {
    if (std::optional<Tensor> few = few_ints(data, device)) return *std::move(few);
  }
  const nb::object parts =
      arrays().attr("bytes_of_data")(data, dtype ? nb::cast(*dtype) : nb::none());
  Py_buffer view;
  if (PyObject_GetBuffer(nb::object(parts[0]).ptr(), &view, PyBUF_SIMPLE) != 0) {
    throw nb::python_error();
  }
  const std::unique_ptr<Py_buffer, void (*)(Py_buffer*)> released(&view, PyBuffer_Release);
  const auto* const first = static_cast<const std::byte*>(view.buf);
  const auto shape = nb::cast<std::vector<int64_t>>(parts[1]);
  const std::span bytes(first, size_t(view.len));
  const auto type = nb::cast<DType>(parts[2]);
  const bool is_missing = (find_device(device).missing_dtypes() & set_of(type.scalar)) != 0;
  if (is_missing && dtype && *dtype != type) {  // what the device has is made of it here
    const Tensor here = Tensor::from_bytes(bytes, shape, type, ref_device().name());
    return here.cast(*dtype).to(find_device(device).name());
  }
  const Tensor tensor = Tensor::from_bytes(bytes, shape, type, device);
  return dtype ? tensor.cast(*dtype) : tensor;
}

void bind_tensor_values(nb::module_& m, TensorClass& c) {
  bind_counters(m);
  bind_scheduled_kernel(m);
  c.def("realize", realize_all, nb::arg("lst"), nb::kw_only(), nb::arg("do_update_stats") = true,
        nb::sig("def realize(self, *lst: Tensor, do_update_stats: bool = True) -> Tensor"),
        R"(Computes this and the other tensors together, and returns this.

>>> a = Tensor([1, 2])
>>> b, c = a + 1, a * 2
>>> b.realize(c) is b
True
)")
      .def(
          "numpy",
          [](const Tensor& x, bool copy) -> nb::object {
            nb::object array = array_of(x);
            return copy ? array.attr("copy")() : array;
          },
          nb::arg("copy") = true,
          nb::sig("def numpy(self, copy: bool = True) -> NDArray[typing.Any]"),
          R"(The values as a NumPy array of its own memory. With copy=False it cannot be written and no later
write changes it: it is the tensor's memory itself on devices that have theirs in the process, and a
write to the tensor goes to other memory while the array lives.

>>> a = Tensor([1, 2])
>>> before = a.numpy(copy=False)
>>> a[0] = 7
>>> before, a.numpy(), before.flags.writeable, a.numpy().flags.writeable
(array([1, 2], dtype=int32), array([7, 2], dtype=int32), False, True)
)")
      .def("item", item_of, nb::sig("def item(self) -> typing.Any"),
           "The number of a tensor of one element.")
      .def("tolist", list_of, nb::sig("def tolist(self) -> typing.Any"),
           "The values as nested lists; of a tensor without axes, the number.")
      .def(
          "__array__",
          [](const Tensor& x, nb::handle dtype, nb::handle copy) {
            return arrays().attr("array_as")(array_of(x), dtype, copy);
          },
          nb::arg("dtype") = nb::none(), nb::arg("copy") = nb::none(),
          nb::sig("def __array__(self, dtype: typing.Any = None, copy: bool | None = None) -> "
                  "NDArray[typing.Any]"))
      .def("schedule", schedule_all, nb::arg("lst"),
           nb::sig("def schedule(self, *lst: Tensor) -> list[ScheduledKernel]"),
           R"(The kernels that realize(*lst) would run now, in order; nothing runs.

>>> a = Tensor([1.0, 2.0])
>>> (a + 1).schedule()
[ScheduledKernel(name='e_2', buffers=2, bytes=16, flops=2)]
)")
      .def("kernel_count", kernel_count_all, nb::arg("lst"),
           nb::sig("def kernel_count(self, *lst: Tensor) -> int"),
           R"(The kernels that realize(*lst) would run now; nothing runs.

>>> a = Tensor([1, 2]) + 1
>>> a.kernel_count(), a.realize().kernel_count()
(1, 0)
)")
      .def("__bool__", truth)
      .def(
          "__float__", [](const Tensor& x) { return nb::float_(item_of(x)); },
          nb::sig("def __float__(self) -> float"))
      .def(
          "__int__", [](const Tensor& x) { return nb::int_(item_of(x)); },
          nb::sig("def __int__(self) -> int"))
      .def("__repr__", repr);
}

}  // namespace weft::python
