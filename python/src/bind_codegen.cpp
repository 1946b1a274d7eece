// From a kernel to its program and source, step by step.
#include <cstddef>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include "codegen/gate_loads.h"
#include "codegen/lower.h"
#include "codegen/opt/choose_opts.h"
#include "codegen/opt/loops.h"
#include "codegen/opt/opt.h"
#include "codegen/target.h"
#include "core.h"
#include "ir/arena.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/spec.h"
#include "passes.h"
#include "render/render.h"
#include "rewrite/pattern.h"
#include "rewrite/trace.h"
#include "runtime/cpu/cpu_toolchain.h"
#include "trace.h"

namespace weft::python {
namespace {

UOp kernel_of(const Graph& g) {
  verify(g.root, Stage::kKernel);
  if (!g.root.is(Op::SINK)) {
    throw nb::value_error(fmt::format("a kernel is a SINK, not {}", name_of(g.root.op())).c_str());
  }
  return g.root;
}

// What is rendered for, whether or not this machine can run it.
struct Language {
  std::string_view target, name;
  Target (*make_target)();
  std::string (*render)(UOp linear, std::string_view name);
};
template <Toolchain toolchain>
Target toolchain_target() {
  return target_of(toolchain);
}
template <Toolchain toolchain>
std::string toolchain_render(UOp linear, std::string_view name) {
  return render(toolchain, linear, name);
}
// With workgroups of a usual size, which a driver would say.
constexpr size_t kUsualThreads = 256;
template <Target (*make)()>
Target in_groups() {
  Target target = make();
  target.groups.threads = kUsualThreads;
  return target;
}
Target opencl_target_of_all() { return opencl_target(kAnyDType); }
Target wgsl_target_of_any() { return wgsl_target(); }
std::string render_wgsl_of_any(UOp linear, std::string_view name) {
  return render_wgsl(linear, name);
}
constexpr Language kLanguages[] = {
    {"LLVM", "llvm", toolchain_target<Toolchain::kLlvm>, toolchain_render<Toolchain::kLlvm>},
    {"C", "c", toolchain_target<Toolchain::kC>, toolchain_render<Toolchain::kC>},
    {"PTX", "ptx", ptx_target, render_ptx},
    {"TRITON", "triton", triton_target, render_triton},
    {"CUDA", "cuda", in_groups<cuda_target>, render_cuda},
    {"OPENCL", "opencl", in_groups<opencl_target_of_all>, render_opencl},
    {"WGSL", "wgsl", in_groups<wgsl_target_of_any>, render_wgsl_of_any},
    {"METAL", "metal", in_groups<metal_target>, render_metal},
    {"HIP", "hip", in_groups<hip_target>, render_hip},
};

const Language& language_named(std::string_view name, std::string_view Language::* member,
                               std::string_view what) {
  std::string known;
  for (const Language& l : kLanguages) {
    if (l.*member == name) return l;
    const bool is_last = &l == std::end(kLanguages) - 1;
    known += fmt::format("{}{}", known.empty() ? "" : is_last ? " or " : ", ", l.*member);
  }
  throw nb::value_error(fmt::format("a {} is {}, not {}", what, known, name).c_str());
}

Graph lower_kernel(const Graph& g, const std::optional<std::string>& opts, std::string_view target,
                   PythonTrace* trace) {
  const UOp kernel = kernel_of(g);
  const Target t = target_named(target);
  Trace* into = nullptr;
  if (trace != nullptr) {
    trace->arenas.push_back(g.arena);
    into = &trace->trace;
  }
  return {g.arena, opts ? lower(kernel, t, parse_opts(*opts), into) : lower(kernel, t, into)};
}

std::string why_one_does_not(const Graph& g, std::string_view opt) {
  const OptList opts = parse_opts(opt);
  if (opts.size() != 1) {
    throw nb::value_error(fmt::format("one optimisation is needed, not {}", opts.size()).c_str());
  }
  return why_not(mark_parallel_loops(kernel_of(g)), opts[0]);
}

std::string render_program(const Graph& g, std::string_view language, std::string_view name) {
  const Language& l = language_named(language, &Language::name, "language");
  verify(g.root, Stage::kProgram);
  if (!g.root.is(Op::LINEAR)) {
    throw nb::value_error(
        fmt::format("a program is a LINEAR, not {}", name_of(g.root.op())).c_str());
  }
  return l.render(g.root, name);
}

constexpr const char* kLowerDoc =
    R"doc(The program of a kernel: a LINEAR, its nodes in the order in which they run.

The optimisations are those given, or else those that choose_opts() gives. The target is LLVM or C, on
this machine, or PTX, TRITON, CUDA, OPENCL, WGSL, METAL or HIP. A trace gets every pass.

>>> i = UOp.range(100, 0)
>>> x, y = (UOp.define_global(dtypes.float32, 100, n) for n in range(2))
>>> kernel = UOp.sink(y.index(i).assign(x.index(i).load() * 2).end(i))
>>> lower(kernel, "VECTOR(0, 16)").op
Ops.LINEAR
>>> print(render(lower(kernel, ""), "c", "twice").splitlines()[-3].strip())
data1[r0] = data0[r0] * 2.0f;
)doc";

constexpr const char* kApplyDoc =
    R"doc(The kernel with optimisations done, one after the other; CompileError when one does not apply.

TILE(axis, n), UPCAST(axis, n), VECTOR(axis, n), UNROLL(axis, n), GROUP(axis, n), THREAD(axis, n),
PAD(axis, n), and STAGE(argument, axis); an axis is the id of a RANGE. docs/codegen.md says what each does.

>>> i = UOp.range(100, 0)
>>> x = UOp.define_global(dtypes.float32, 100, 0)
>>> kernel = UOp.sink(x.index(i).assign(x.index(i).load() * 2).end(i))
>>> [r.src[0].arg for r in apply_opts(kernel, "TILE(0, 10)").toposort() if r.op is Ops.RANGE]
[10, 10]
)doc";

}  // namespace

Target target_named(std::string_view name) {
  return language_named(name, &Language::target, "target").make_target();
}

void bind_codegen(nb::module_& m) {
  m.def("lower", lower_kernel, nb::arg("kernel"), nb::arg("opts") = nb::none(),
        nb::arg("target") = "LLVM", nb::arg("trace") = nb::none(),
        nb::sig("def lower(kernel: UOp, opts: str | None = None, target: str = 'LLVM', "
                "trace: Trace | None = None) -> UOp"),
        kLowerDoc);
  m.def(
      "apply_opts",
      [](const Graph& g, std::string_view opts) {
        return Graph{g.arena, apply_opts(kernel_of(g), parse_opts(opts))};
      },
      nb::arg("kernel"), nb::arg("opts"), nb::sig("def apply_opts(kernel: UOp, opts: str) -> UOp"),
      kApplyDoc);
  m.def("why_not", why_one_does_not, nb::arg("kernel"), nb::arg("opt"),
        nb::sig("def why_not(kernel: UOp, opt: str) -> str"),
        R"doc(Why an optimisation does not apply to a kernel; "" when it does.

>>> i = UOp.range(4, 0)
>>> x = UOp.define_global(dtypes.float32, 4, 0)
>>> kernel = UOp.sink(x.index(i).assign(x.index(i).load() * 2).end(i))
>>> why_not(kernel, "VECTOR(0, 8)")
'the loop is shorter than that'
)doc");
  m.def(
      "choose_opts",
      [](const Graph& g, std::string_view target) {
        return print(choose_opts(gate_loads(kernel_of(g)), target_named(target)));
      },
      nb::arg("kernel"), nb::arg("target") = "LLVM",
      nb::sig("def choose_opts(kernel: UOp, target: str = 'LLVM') -> str"),
      "The optimisations that are likely to be fast on this machine, by rules of thumb.");
  m.def("render", render_program, nb::arg("linear"), nb::arg("language"),
        nb::arg("name") = "kernel",
        nb::sig("def render(linear: UOp, language: str, name: str = 'kernel') -> str"),
        "The source of a program, as lower() gives it for the target: c, llvm, ptx, triton, cuda, "
        "opencl, wgsl, metal or hip.");
}

}  // namespace weft::python
