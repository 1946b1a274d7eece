// dlopen, and where libraries lie.
#include "base/dynamic_library.h"

#include <algorithm>
#include <cstddef>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/config.h"

namespace weft {

DynamicLibrary DynamicLibrary::open(const std::string& name) {
  return DynamicLibrary(dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE));
}

DynamicLibrary DynamicLibrary::loaded(const std::string& name) {
  return DynamicLibrary(dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD));
}

void* DynamicLibrary::symbol(const char* name) const {
  return handle_ == nullptr ? nullptr : dlsym(handle_, name);
}

std::string DynamicLibrary::last_error() {
  const char* text = dlerror();
  return text == nullptr ? std::string() : std::string(text);
}

namespace {

struct AddedFolders {
  std::mutex mutex;
  std::vector<std::string> folders;
};

AddedFolders& added_folders() {
  static auto& instance = *new AddedFolders;
  return instance;
}

}  // namespace

void add_library_folder(std::string folder) {
  AddedFolders& added = added_folders();
  const std::lock_guard lock(added.mutex);
  added.folders.push_back(std::move(folder));
}

std::string find_library_file(const std::string& name) {
  std::vector<std::string> folders;
  std::string_view path = config().library_path;
  while (!path.empty()) {
    const size_t end = std::min(path.find(':'), path.size());
    if (end > 0) folders.emplace_back(path.substr(0, end));
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  for (const char* folder :
       {"/usr/local/lib", "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64",
        "/usr/lib", "/lib64", "/lib"}) {
    folders.emplace_back(folder);
  }
  {
    AddedFolders& added = added_folders();
    const std::lock_guard lock(added.mutex);
    folders.insert(folders.end(), added.folders.begin(), added.folders.end());
  }
  for (const std::string& folder : folders) {
    std::string file = fmt::format("{}/{}", folder, name);
    if (access(file.c_str(), R_OK) == 0) return file;
  }
  return {};
}

std::string file_identity(const std::string& path) {
  struct stat info{};
  if (stat(path.c_str(), &info) != 0) return {};
  return fmt::format("{} {} {}.{}", path, info.st_size, info.st_mtim.tv_sec, info.st_mtim.tv_nsec);
}

}  // namespace weft
