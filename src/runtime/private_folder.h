// A folder on disk whose files nobody else can have written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace weft {

// A file descriptor that is closed with the object.
class OpenFile {
 public:
  OpenFile() = default;
  explicit OpenFile(int number) : number_(number) {}
  OpenFile(OpenFile&& other) noexcept : number_(other.release()) {}
  OpenFile& operator=(OpenFile&&) = delete;
  ~OpenFile();

  int number() const { return number_; }
  explicit operator bool() const { return number_ >= 0; }
  int release() {
    const int number = number_;
    number_ = -1;
    return number;
  }

 private:
  int number_ = -1;
};

// Why a path is not used: what was tried, on which path, and what came of it.
struct Refusal {
  std::string what, path, why;
};

enum class Missing : uint8_t { kStays, kIsMade };

// What is in a folder is run, so that it and every folder above it must be such that nobody else
// can put something there: owned by this user or by root, and written to by others only with the
// sticky bit set. The folder itself is this user's and nobody else writes there.
class PrivateFolder {
 public:
  // Relative paths are relative to the folder that the process is in now.
  explicit PrivateFolder(const std::string& path);

  const std::string& path() const { return path_; }
  // The folder, to use with openat and its like. None where it is missing, or does not qualify or
  // cannot be made: then `refusal` says so. Folders that are made have mode 0700. Not thread-safe.
  OpenFile open(Missing missing, std::optional<Refusal>& refusal);

 private:
  OpenFile open_checked(std::optional<Refusal>& refusal) const;

  std::string path_;
  std::string real_path_;  // without links; empty: not checked yet
};

enum class Trust : uint8_t { kAbsent, kRefused, kTrusted };

struct TrustedFile {
  Trust trust = Trust::kAbsent;
  OpenFile file;
  std::string why;  // of kRefused
};
// A regular file. Links are not followed, and nothing blocks.
TrustedFile open_regular(int folder, const char* name);
// One of this user's that nobody else may write to.
TrustedFile open_trusted(int folder, const char* name);

// False when there is less.
bool read_all(int file, void* to, size_t bytes);

}  // namespace weft
