// Where the library may be: WEFT_WGPU_LIBRARY, the folders of the system, Python's packages.
#include "runtime/webgpu/wgpu_library.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include "base/config.h"
#include "base/dynamic_library.h"
#include "base/error.h"
#include "runtime/webgpu/wgpu_functions.h"

namespace weft {
namespace {

constexpr const char* kInstall =
    "install it (pip install wgpu==0.32.0), or name the file of libwgpu_native.so in "
    "WEFT_WGPU_LIBRARY";

std::vector<std::string> candidates() {
  if (!config().wgpu_library.empty()) return {config().wgpu_library};
  std::vector<std::string> files;
  std::string_view path = config().package_path;
  while (!path.empty()) {
    const size_t end = std::min(path.find(':'), path.size());
    files.push_back(
        fmt::format("{}/wgpu/resources/libwgpu_native-release.so", path.substr(0, end)));
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  files.push_back(find_library_file("libwgpu_native.so"));
  std::erase_if(files, [](const std::string& file) {
    return file.empty() || access(file.c_str(), R_OK) != 0;
  });
  return files;
}

struct Library {
  wgpu::Functions functions;
  std::string identity, error;

  Library() {
    const std::vector<std::string> files = candidates();
    if (files.empty()) {
      error = fmt::format("there is no wgpu-native here; {}", kInstall);
      return;
    }
    for (const std::string& file : files) {
      if (load(file)) return;
    }
  }

  bool load(const std::string& file) {
    const DynamicLibrary library = DynamicLibrary::open(file);
    if (!library) {
      error = fmt::format("{}; {}", DynamicLibrary::last_error(), kInstall);
      return false;
    }
    auto* get_version = library.function<uint32_t()>("wgpuGetVersion");
    const uint32_t version = get_version == nullptr ? 0 : get_version();
    const std::string number = fmt::format("{}.{}.{}.{}", version >> 24, version >> 16 & 255,
                                           version >> 8 & 255, version & 255);
    if (version >> 24 != wgpu::kVersion || !functions.load(library)) {
      error = fmt::format("{} is wgpu-native {}, whose interface is another one than {}'s; {}",
                          file, number, wgpu::kVersion, kInstall);
      return false;
    }
    identity = fmt::format("wgpu-native {} ({})", number, file);
    error.clear();
    return true;
  }
};

const Library& library() {
  static const Library* const kLibrary = new Library;
  return *kLibrary;
}

}  // namespace

const wgpu::Functions& wgpu_library() {
  if (!library().error.empty()) throw DeviceError(library().error);
  return library().functions;
}

std::string wgpu_identity() { return library().identity; }

}  // namespace weft
