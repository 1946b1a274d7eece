// A folder for the time of the call, a child in it, and the file that it leaves there.
#include "runtime/run_compiler.h"

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <ios>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include "base/child_process.h"
#include "base/config.h"
#include "base/error.h"
#include "runtime/private_folder.h"

namespace weft {
namespace {

constexpr int64_t kMostObject = int64_t(256) << 20;

struct Output {
  std::vector<std::byte> bytes;
  std::string why_not;  // empty: these are they
};

Output read_output(const std::string& path) {
  const TrustedFile opened = open_regular(AT_FDCWD, path.c_str());
  if (opened.trust == Trust::kRefused) return {{}, "wrote no object: " + opened.why};
  struct stat info{};
  if (opened.trust == Trust::kAbsent || fstat(opened.file.number(), &info) != 0 ||
      info.st_size == 0) {
    return {{}, "wrote no object"};
  }
  if (info.st_size > kMostObject) {
    return {{},
            fmt::format("wrote an object of {} bytes; {} are allowed", info.st_size, kMostObject)};
  }
  Output output{std::vector<std::byte>(size_t(info.st_size)), {}};
  if (!read_all(opened.file.number(), output.bytes.data(), output.bytes.size())) {
    output.why_not = "wrote an object that cannot be read";
  }
  return output;
}

// What is in the folder will be run.
void check_private(const std::string& folder) {
  std::optional<Refusal> refusal;
  const OpenFile opened = PrivateFolder(folder).open(Missing::kStays, refusal);
  if (!refusal) return;
  throw Error(fmt::format("{} {}: {} (TMPDIR says where compilers work)", refusal->what,
                          refusal->path, refusal->why));
}

std::string how_it_ended(const ChildResult& result, int seconds) {
  switch (result.end) {
    case ChildResult::End::kTimedOut:
      return fmt::format("was killed after {} s (WEFT_COMPILE_SECONDS)", seconds);
    case ChildResult::End::kKilled: return fmt::format("ended by signal {}", result.code);
    case ChildResult::End::kExited: break;
  }
  return fmt::format("ended with status {}", result.code);
}

}  // namespace

std::vector<std::byte> run_compiler(std::string_view device, std::string_view name,
                                    std::string_view source, std::string_view extension,
                                    const CompilerCommand& command) {
  const int seconds = config().compile_seconds;
  try {
    const TempFolder folder;
    check_private(folder.path());
    const std::string input = fmt::format("{}/kernel{}", folder.path(), extension),
                      output = folder.path() + "/kernel.o";
    std::ofstream file(input, std::ios::binary);
    if (!file.write(source.data(), std::streamsize(source.size())).flush()) {
      throw Error(fmt::format("cannot write {}", input));
    }
    const std::vector<std::string> line = command(input, output);
    const ChildResult result = run_child(line, input, {"TMPDIR=" + folder.path()}, seconds);
    const bool is_done = result.end == ChildResult::End::kExited && result.code == 0;
    Output object = is_done ? read_output(output) : Output{{}, how_it_ended(result, seconds)};
    if (object.why_not.empty()) return std::move(object.bytes);
    throw CompileError(fmt::format("[{}] {}: {} {}{}{}", device, name, line[0], object.why_not,
                                   result.output.empty() ? "" : ":\n", result.output));
  } catch (const CompileError&) {
    throw;
  } catch (const Error& e) {
    throw CompileError(fmt::format("[{}] {}: {}", device, name, e.what()));
  }
}

}  // namespace weft
