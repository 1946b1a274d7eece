// mmap, and fstat before each use.
#include "runtime/mapped_file.h"

#include <cerrno>
#include <cstddef>
#include <memory>
#include <span>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/buffer.h"

namespace weft {
namespace {

[[noreturn]] void fail(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

[[noreturn]] void fail_short(size_t needed, size_t there) {
  throw MappedFileError(fmt::format(
      "[mapped file] it has become shorter since it was loaded: {} bytes are needed, {} are "
      "there. Files that are loaded must not be written in place or shortened",
      needed, there));
}

struct MappedBytes : Buffer::Lender {
  MappedBytes(std::shared_ptr<const MappedFile> f, size_t e) : file(std::move(f)), end(e) {}
  void check() const override { file->check(end); }
  bool may_vanish() const override { return true; }

  std::shared_ptr<const MappedFile> file;
  size_t end;
};

}  // namespace

MappedFile::MappedFile(int descriptor) : descriptor_(fcntl(descriptor, F_DUPFD_CLOEXEC, 0)) {
  if (descriptor_ < 0) fail("cannot keep the file open");
  struct stat info{};
  void* memory = nullptr;
  bool is_there = fstat(descriptor_, &info) == 0;
  bytes_ = size_t(info.st_size);
  if (is_there && bytes_ > 0) {
    memory = mmap(nullptr, bytes_, PROT_READ, MAP_SHARED, descriptor_, 0);
    is_there = memory != MAP_FAILED;
  }
  if (!is_there) {
    const int error = errno;
    close(descriptor_);
    errno = error;
    fail("cannot map the file");
  }
  memory_ = static_cast<std::byte*>(memory);
}

MappedFile::~MappedFile() {
  if (memory_ != nullptr) munmap(memory_, bytes_);
  close(descriptor_);
}

void MappedFile::read(size_t first, std::span<std::byte> to) const {
  size_t done = 0;
  while (done < to.size()) {
    const ssize_t count =
        pread(descriptor_, to.data() + done, to.size() - done, off_t(first + done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail("cannot read the file");
    if (count == 0) fail_short(first + to.size(), first + done);
    done += size_t(count);
  }
}

void MappedFile::check(size_t end) const {
  struct stat info{};
  if (fstat(descriptor_, &info) == 0 && size_t(info.st_size) < end) {
    fail_short(end, size_t(info.st_size));
  }
}

std::unique_ptr<Buffer::Lender> MappedFile::lend(std::shared_ptr<const MappedFile> file,
                                                 size_t end) {
  return std::make_unique<MappedBytes>(std::move(file), end);
}

}  // namespace weft
