// A file as memory: mapped once, read by those that share it, and watched for becoming shorter.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "runtime/buffer.h"
#include "weft/error.h"

namespace weft {

// A file that is not what it was when it was mapped.
class MappedFileError : public Error {
  using Error::Error;
};

class MappedFile {
 public:
  // Throws std::system_error. The file that `descriptor` names stays open on a descriptor of its
  // own.
  explicit MappedFile(int descriptor);
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  size_t bytes() const { return bytes_; }
  std::byte* memory() const { return memory_; }

  // Reads without the map: the bytes that are there now. Throws MappedFileError when the file has
  // become shorter than asked for, std::system_error when it cannot be read.
  void read(size_t first, std::span<std::byte> to) const;
  // Throws MappedFileError when the first `end` bytes are not there any more: the system ends a
  // process that reads them in the map.
  void check(size_t end) const;

  // Holds the file for a Buffer on its bytes up to `end`.
  static std::unique_ptr<Buffer::Lender> lend(std::shared_ptr<const MappedFile> file, size_t end);

 private:
  int descriptor_;
  size_t bytes_ = 0;
  std::byte* memory_ = nullptr;
};

}  // namespace weft
