// The checks that ssh makes of its files, from the root of the file system down.
#include "runtime/private_folder.h"

#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

namespace weft {
namespace {

namespace fs = std::filesystem;

std::string text_of(int error) { return std::generic_category().message(error); }

std::string others_may_write(mode_t mode) {
  if ((mode & S_IWOTH) != 0) return "everyone may write there";
  return (mode & S_IWGRP) != 0 ? "its group may write there" : "";
}

std::string belongs_to_other(uid_t owner) { return fmt::format("it belongs to user {}", owner); }

// Why others might exchange what lies in this folder; empty: they cannot.
std::string why_not_above(const struct stat& info) {
  if (!S_ISDIR(info.st_mode)) return text_of(ENOTDIR);
  if (info.st_uid != 0 && info.st_uid != geteuid()) return belongs_to_other(info.st_uid);
  return (info.st_mode & S_ISVTX) != 0 ? "" : others_may_write(info.st_mode);
}

// The same for what is this user's alone.
std::string why_not_own(const struct stat& info) {
  if (info.st_uid != geteuid()) return belongs_to_other(info.st_uid);
  return others_may_write(info.st_mode);
}

// Every folder of this path, which has no links, from the root on. Null: all is well.
std::optional<Refusal> check_all_above(const fs::path& path) {
  fs::path above;
  for (const fs::path& part : path) {
    above /= part;
    struct stat info{};
    if (lstat(above.c_str(), &info) != 0) {
      return Refusal{.what = "cannot read", .path = above.string(), .why = text_of(errno)};
    }
    if (std::string why = why_not_above(info); !why.empty()) {
      return Refusal{.what = "not using", .path = above.string(), .why = std::move(why)};
    }
  }
  return std::nullopt;
}

// Makes what is missing of a path, once what there is of it is known to be safe.
std::optional<Refusal> make_folders(const fs::path& path) {
  fs::path there = path;
  std::vector<fs::path> missing;
  struct stat info{};
  while (there.has_relative_path() && lstat(there.c_str(), &info) != 0) {
    missing.push_back(there);
    there = there.parent_path();
  }
  if (!missing.empty() && lstat(there.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) {
    if (auto refusal = check_all_above(there)) return refusal;
  }
  for (; !missing.empty(); missing.pop_back()) {
    if (mkdir(missing.back().c_str(), 0700) != 0 && errno != EEXIST) {
      return Refusal{.what = "cannot make", .path = missing.back().string(), .why = text_of(errno)};
    }
  }
  return std::nullopt;
}

TrustedFile refused(std::string why) {
  return {.trust = Trust::kRefused, .file = OpenFile(), .why = std::move(why)};
}

}  // namespace

OpenFile::~OpenFile() {
  if (number_ >= 0) ::close(number_);
}

PrivateFolder::PrivateFolder(const std::string& path) {
  std::error_code error;
  path_ = path.empty() ? path : fs::absolute(path, error).lexically_normal().string();
  while (path_.size() > 1 && path_.back() == '/') path_.pop_back();
}

OpenFile PrivateFolder::open(Missing missing, std::optional<Refusal>& refusal) {
  if (!real_path_.empty()) {
    OpenFile folder = open_checked(refusal);
    if (folder || refusal) return folder;
    real_path_.clear();  // it was removed
  }
  std::error_code error;
  fs::path real = fs::weakly_canonical(path_, error);
  if (error) real = path_;
  if (missing == Missing::kIsMade) refusal = make_folders(real);
  struct stat info{};
  if (refusal || lstat(real.c_str(), &info) != 0) return OpenFile();
  refusal = check_all_above(real);
  if (refusal) return OpenFile();
  real_path_ = real.string();
  return open_checked(refusal);
}

OpenFile PrivateFolder::open_checked(std::optional<Refusal>& refusal) const {
  OpenFile folder(::open(real_path_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat info{};
  if (!folder || fstat(folder.number(), &info) != 0) {
    if (errno != ENOENT) refusal = Refusal{"cannot read", real_path_, text_of(errno)};
    return OpenFile();
  }
  std::string why = why_not_own(info);
  if (why.empty()) return folder;
  refusal = Refusal{.what = "not using", .path = real_path_, .why = std::move(why)};
  return OpenFile();
}

TrustedFile open_regular(int folder, const char* name) {
  OpenFile file(openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!file) {
    if (errno == ENOENT) return {};
    return refused(errno == ELOOP ? "it is a link" : text_of(errno));
  }
  struct stat info{};
  if (fstat(file.number(), &info) != 0) return refused(text_of(errno));
  if (!S_ISREG(info.st_mode)) return refused("it is not a regular file");
  return {.trust = Trust::kTrusted, .file = std::move(file), .why = {}};
}

TrustedFile open_trusted(int folder, const char* name) {
  TrustedFile opened = open_regular(folder, name);
  struct stat info{};
  if (opened.trust != Trust::kTrusted || fstat(opened.file.number(), &info) != 0) return opened;
  std::string why = why_not_own(info);
  return why.empty() ? std::move(opened) : refused(std::move(why));
}

bool read_all(int file, void* to, size_t bytes) {
  auto* at = static_cast<char*>(to);
  while (bytes > 0) {
    const ssize_t count = ::read(file, at, bytes);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    at += count;
    bytes -= size_t(count);
  }
  return true;
}

}  // namespace weft
