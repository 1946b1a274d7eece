// What the C-like languages of GPUs share: a kernel that one thread of a workgroup runs. A language
// is a GpuDialect, a table of its names.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "codegen/target.h"
#include "ir/dtype.h"
#include "ir/node.h"
#include "render/c_style.h"
#include "rewrite/pattern.h"

namespace weft {

// The types of languages that are C++ for GPUs.
inline constexpr auto kCppTypes = c_types({Scalar::kBool, "bool"});

// A row for CASTs that the base has none for, or not the best one.
struct GpuCast {
  DTypeSet from, to;
  CRow row;
};

// How WMMA and what feeds it are written.
struct GpuTensorText {
  std::string_view functions;      // in front of a kernel that copies
  std::string_view wait_products;  // in front of every wait, for all but $n
  std::string_view fetch;          // of 16 bytes from $f to $p, or zeros where not $g
  std::string_view put;            // the vector $v at $p, as a copy would
  std::string_view commit;
  std::string_view wait;  // for all groups but $n
  // Boxes, of arrays that are parameters of a type of their own. Groups of them that are under way,
  // at most $n, are counted by something that the kernel begins with.
  std::string_view box_functions, boxed_array, begin_boxes;
  std::string_view fetch_box;     // from the array $m to $p, by $t, where $g, at $L in $n axes
  std::string_view commit_boxes;  // of $B bytes that $t fetched
  std::string_view wait_boxes;    // for all groups but $n
  // The function of a product, and what it is called; sums are read once `done`, of sums $v.
  std::string (*function)(UOp wmma, std::string_view name, std::string_view sums_type,
                          std::string_view memory_type, std::string_view first_type);
  std::string_view done;
};

// Patterns have $T for a type, $N for a name, $K for the place among the arguments, $S for the
// address space of a pointer, $p for a pointer, perhaps a sum, $v for a value, $n for a number (of
// lanes, of elements, of threads), $B for bytes, $L for the lanes of a vector with commas between.
struct GpuDialect {
  std::string_view name;   // of the language, for messages
  std::string_view start;  // the first lines of a source
  std::string_view function_start = "static";
  std::span<const CType> types;
  std::string_view suffix_of_64_bits = "l";  // of literals

  // The kernel's function.
  std::string_view kernel;    // up to its name; $x $y $z are the threads of a group, $n all
  std::string_view buffer;    // a parameter: a pointer to memory of the device
  std::string_view variable;  // a parameter: an integer
  std::string_view more_parameters{};          // after those
  std::string_view global_space, local_space;  // of pointers
  std::string_view local;                      // the declaration of $n elements of a workgroup
  // Locals of more bytes in all lie in one piece, which `locals` declares, each at the place $n.
  size_t most_local_bytes = SIZE_MAX;
  std::string_view locals{}, local_in_locals{};
  std::array<std::string_view, 3> group, thread;
  std::string_view barrier;

  // Vectors are only read, taken apart, put together and written.
  std::string_view vector_name;          // of a type $T with $n lanes
  std::string_view vector_defined_as{};  // empty: the language has the name
  std::string_view make_vector;          // of the lanes
  bool converts_lanes = true;            // make_vector takes lanes of wider types, too
  std::array<std::string_view, 16> lanes;
  std::string_view any_lane{};  // lane $n of longer vectors
  std::string_view read_vector, write_vector;
  // Where nothing proves that a vector in memory is aligned to its size; empty: it need not be.
  std::string_view read_unaligned{}, write_unaligned{};

  std::string_view bitcast_body;  // of a function from a value `a` to $T

  // Looked up before those of all languages.
  std::span<const CRow> rows{};
  std::span<const GpuCast> casts{};

  // Products of tiles; null: the language has none.
  const GpuTensorText* tensor = nullptr;
};

inline constexpr std::array<std::string_view, 16> kLanesByIndex = {
    "[0]", "[1]", "[2]",  "[3]",  "[4]",  "[5]",  "[6]",  "[7]",
    "[8]", "[9]", "[10]", "[11]", "[12]", "[13]", "[14]", "[15]"};

// The function takes a pointer per DEFINE_GLOBAL in order of number, then the VARIABLEs in order of
// name. SPECIALs are gidxN, of groups, and lidxN, of threads; a list without them is for one thread
// of one group. DEFINE_LOCALs are memory of the workgroup.
std::string render_gpu_c(UOp linear, std::string_view name, const GpuDialect& dialect);

// What all these languages have text for: `dtypes` are those with arithmetic. The dtypes of the
// dialect's casts are added, the sizes of workgroups are for the device's owner to set.
Target gpu_c_target(std::string_view name, const GpuDialect& dialect, DTypeSet dtypes);

}  // namespace weft
