// PTX through ptxas, NVIDIA's assembler: from PATH, or where the CUDA toolkit installs it.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "base/child_process.h"
#include "ir/node.h"
#include "render/render.h"

namespace weft::test {

// Empty when there is none.
inline std::string find_ptxas() {
  if (std::string found = find_program("ptxas"); !found.empty()) return found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/usr/local", error)) {
    if (!entry.path().filename().string().starts_with("cuda")) continue;
    if (std::string found = find_program(entry.path() / "bin/ptxas"); !found.empty()) return found;
  }
  return "";
}

// Kernels that are assembled together.
class PtxBatch {
 public:
  explicit PtxBatch(PtxLevel level) : level_(level) {}

  void add(UOp linear) {
    const std::string text = render_ptx(linear, fmt::format("kernel{}", count_), level_);
    const size_t header =
        text.find(".address_size 64\n") + std::string_view(".address_size 64\n").size();
    text_ += count_ == 0 ? text : text.substr(header);
    count_++;
  }
  size_t size() const { return count_; }
  const std::string& text() const { return text_; }

  // What ptxas says against them, or "".
  std::string fault(const std::string& ptxas) const {
    const TempFolder folder;
    const std::string file = folder.path() + "/batch.ptx";
    std::ofstream(file) << text_;
    const char* machine = level_ == PtxLevel::kSm90 ? "sm_90" : "sm_80";
    const ChildResult result =
        run_child({ptxas, fmt::format("--gpu-name={}", machine), "--opt-level=0", "--output-file",
                   folder.path() + "/batch.cubin", file},
                  "/dev/null", {}, 300);
    if (result.end == ChildResult::End::kExited && result.code == 0) return "";
    return result.output + "\nptxas failed on\n" + text_;
  }

 private:
  PtxLevel level_;
  size_t count_ = 0;
  std::string text_;
};

}  // namespace weft::test
