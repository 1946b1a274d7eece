// A shared library found and loaded while the process runs.
#pragma once

#include <string>

namespace weft {

// Stays loaded for ever: libraries with threads and handlers of their own cannot be unloaded.
class DynamicLibrary {
 public:
  DynamicLibrary() = default;
  // `name` is a path, or a name that the system's loader looks for. None when it finds nothing.
  static DynamicLibrary open(const std::string& name);
  // One that is in the process already; none when it is not.
  static DynamicLibrary loaded(const std::string& name);

  explicit operator bool() const { return handle_ != nullptr; }
  // Null when there is none.
  void* symbol(const char* name) const;
  template <class Function>
  Function* function(const char* name) const {
    return reinterpret_cast<Function*>(symbol(name));
  }
  // Why the last open() of this thread found nothing, as the system says it.
  static std::string last_error();

 private:
  explicit DynamicLibrary(void* handle) : handle_(handle) {}

  void* handle_ = nullptr;
};

// The file of a library in the folders where the system keeps them and those of LD_LIBRARY_PATH,
// without loading it; empty when it is in none.
std::string find_library_file(const std::string& name);
// A further folder for it to look in, after those: where packages bring libraries.
void add_library_folder(std::string folder);

// What tells a file from what it may be replaced by: its path, size and time of change. Empty when
// there is no such file.
std::string file_identity(const std::string& path);

}  // namespace weft
