// <folder>/entries/<digits of the key>.weft: a header, then the bytes.
#include "runtime/kernel_cache.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/config.h"
#include "base/hash.h"
#include "runtime/private_folder.h"

namespace weft {
namespace {

constexpr std::array<char, 8> kMagic{'w', 'e', 'f', 't', 'k', 'c', '0', '1'};
constexpr std::time_t kUsedEvery = 3600;  // seconds, after which a read marks an entry as used
constexpr std::time_t kStaleTemp = 3600;  // seconds, after which a file half written is garbage
constexpr int64_t kMostEntry = int64_t(1) << 30;
constexpr const char* kOwnFolder = "entries";  // in it is what the cache wrote, and nothing else

struct Header {
  std::array<char, 8> magic = kMagic;
  Hash128 key;
  uint64_t size = 0;
  Hash128 checksum;
};

Hash128 checksum_of(std::span<const std::byte> bytes) {
  return hash_bytes_128({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

bool write_all(int file, const void* from, size_t bytes) {
  const auto* at = static_cast<const char*>(from);
  while (bytes > 0) {
    const ssize_t count = ::write(file, at, bytes);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    at += count;
    bytes -= size_t(count);
  }
  return true;
}

enum class Read : uint8_t { kAbsent, kRefused, kDamaged, kWhole };

struct ReadEntry {
  Read how = Read::kAbsent;
  std::vector<std::byte> bytes;
  std::string why;  // of kRefused
};

bool is_of_key(const Header& header, const Hash128& key) {
  return header.magic == kMagic && header.key == key;
}

ReadEntry read_entry(int folder, const std::string& name, const Hash128& key) {
  TrustedFile opened = open_trusted(folder, name.c_str());
  if (opened.trust == Trust::kAbsent) return {};
  if (opened.trust == Trust::kRefused) return {Read::kRefused, {}, std::move(opened.why)};
  const int file = opened.file.number();
  struct stat info{};
  Header header;
  if (fstat(file, &info) != 0 || !read_all(file, &header, sizeof header)) {
    return {.how = Read::kDamaged, .bytes = {}, .why = {}};
  }
  const bool is_ours = is_of_key(header, key) && header.size <= uint64_t(kMostEntry) &&
                       uint64_t(info.st_size) == sizeof header + header.size;
  if (!is_ours) return {.how = Read::kDamaged, .bytes = {}, .why = {}};
  std::vector<std::byte> bytes(header.size);
  if (!read_all(file, bytes.data(), bytes.size()) || checksum_of(bytes) != header.checksum) {
    return {.how = Read::kDamaged, .bytes = {}, .why = {}};
  }
  if (std::time(nullptr) - info.st_mtime > kUsedEvery) futimens(file, nullptr);
  return {.how = Read::kWhole, .bytes = std::move(bytes), .why = {}};
}

// ---- names: 32 digits of the key and an ending; while it is written, two numbers and another one

constexpr std::string_view kEntryEnd = ".weft", kTempEnd = ".tmp";
constexpr size_t kKeyDigits = 32;

std::string name_of(const Hash128& key) { return key.hex() + std::string(kEntryEnd); }

// The digits of the key that a name starts with; none: an entry does not have this name.
std::optional<std::string> key_digits(std::string_view name) {
  const auto is_digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  const std::string_view digits = name.substr(0, kKeyDigits);
  if (digits.size() < kKeyDigits || !std::ranges::all_of(digits, is_digit)) return {};
  if (!name.substr(kKeyDigits).starts_with(kEntryEnd)) return {};
  return std::string(digits);
}

bool is_entry(std::string_view name) {
  return name.size() == kKeyDigits + kEntryEnd.size() && key_digits(name);
}
bool is_temp(std::string_view name) {
  return !is_entry(name) && key_digits(name) && name.ends_with(kTempEnd);
}

struct Entry {
  std::string name;
  int64_t bytes;
  timespec used;
};

// Files of this user's with the names of entries and of temporary files.
std::vector<Entry> list_entries(int folder) {
  std::vector<Entry> entries;
  const int copy = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* const stream = copy < 0 ? nullptr : fdopendir(copy);
  if (stream == nullptr) {
    if (copy >= 0) ::close(copy);
    return entries;
  }
  while (const dirent* const each = readdir(stream)) {
    struct stat info{};
    if (!key_digits(each->d_name) ||
        fstatat(folder, each->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(info.st_mode) ||
        info.st_uid != geteuid()) {
      continue;
    }
    entries.push_back({each->d_name, int64_t(info.st_size), info.st_mtim});
  }
  closedir(stream);
  return entries;
}

// Whether the cache wrote this file: it starts with a header of the key that its name says.
bool is_written_by_cache(int folder, const std::string& name) {
  const TrustedFile opened = open_trusted(folder, name.c_str());
  Header header;
  return opened.trust == Trust::kTrusted &&
         read_all(opened.file.number(), &header, sizeof header) && header.magic == kMagic &&
         key_digits(name) == header.key.hex();
}

}  // namespace

class KernelCache::Folder {
 public:
  Folder(const std::string& path, int64_t most_bytes)
      : is_on_(!path.empty() && most_bytes > 0),
        folder_(path.empty() ? path : path + "/" + kOwnFolder),
        most_bytes_(most_bytes) {}

  std::optional<std::vector<std::byte>> get(const Hash128& key) {
    ReadEntry read;
    if (const OpenFile folder = open(Missing::kStays)) {
      const std::string name = name_of(key);
      read = read_entry(folder.number(), name, key);
      if (read.how == Read::kDamaged) unlinkat(folder.number(), name.c_str(), 0);
    }
    const std::lock_guard lock(mutex_);
    if (read.how == Read::kRefused) warn({"not using", path_of(name_of(key)), read.why});
    if (read.how == Read::kWhole) {
      counts_.hits++;
      return std::move(read.bytes);
    }
    counts_.misses++;
    if (read.how == Read::kDamaged) counts_.damaged++;
    return std::nullopt;
  }

  void put(const Hash128& key, std::span<const std::byte> bytes) {
    const auto size = int64_t(sizeof(Header) + bytes.size());
    if (!can_write_ || size > std::min(most_bytes_, kMostEntry)) return;
    const OpenFile folder = open(Missing::kIsMade);
    if (!folder) return;
    const std::lock_guard lock(mutex_);
    const std::string name = name_of(key);
    // What lies there and does not qualify is somebody's, and stays.
    if (open_trusted(folder.number(), name.c_str()).trust == Trust::kRefused) return;
    if (!write_entry(folder.number(), name, key, bytes)) {
      // Once: what went wrong with one goes wrong with the next.
      can_write_ = false;
      return;
    }
    counts_.written++;
    unseen_bytes_ += size;
    // Looking at the whole folder is slow: now and then is enough, also for many processes that
    // write one entry each.
    const bool is_due = unseen_bytes_ > most_bytes_ / 16 || key.low % 64 == 0;
    if (is_due) evict(folder.number());
  }

  void remove(const Hash128& key) {
    const OpenFile folder = open(Missing::kStays);
    const std::string name = name_of(key);
    if (!folder || !is_written_by_cache(folder.number(), name)) return;
    unlinkat(folder.number(), name.c_str(), 0);
  }

  Counts counts() const {
    const std::lock_guard lock(mutex_);
    return counts_;
  }

 private:
  OpenFile open(Missing missing) {
    if (!is_on_) return OpenFile();
    const std::lock_guard lock(mutex_);
    std::optional<Refusal> refusal;
    OpenFile folder = folder_.open(missing, refusal);
    if (refusal) {
      warn(*refusal);
      is_on_ = false;
    }
    return folder;
  }

  std::string path_of(std::string_view name) const {
    return fmt::format("{}/{}", folder_.path(), name);
  }

  void warn(const Refusal& refusal) {
    if (std::exchange(has_warned_, true)) return;
    fmt::print(stderr,
               "weft: compiled kernels are not kept: {} {}: {} (WEFT_CACHE_DIR says where, "
               "WEFT_CACHE_MB=0 turns it off)\n",
               refusal.what, refusal.path, refusal.why);
  }

  bool write_entry(int folder, const std::string& name, const Hash128& key,
                   std::span<const std::byte> bytes) {
    static std::atomic<uint64_t> number = 0;
    const std::string temp = fmt::format("{}.{}.{}{}", name, getpid(), number++, kTempEnd);
    const OpenFile file(
        openat(folder, temp.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    const Header header{.key = key, .size = uint64_t(bytes.size()), .checksum = checksum_of(bytes)};
    const bool is_written = file && write_all(file.number(), &header, sizeof header) &&
                            write_all(file.number(), bytes.data(), bytes.size()) &&
                            renameat(folder, temp.c_str(), folder, name.c_str()) == 0;
    if (!is_written) {
      warn({"cannot write to", path_of(name), std::generic_category().message(errno)});
      if (file) unlinkat(folder, temp.c_str(), 0);
    }
    return is_written;
  }

  // The least recently used entries, down to 3/4 of the bound, so that the next ones need no look;
  // and what someone left half written. A file that only looks like one of these stays.
  void evict(int folder) {
    unseen_bytes_ = 0;
    std::vector<Entry> entries = list_entries(folder);
    const std::time_t stale = std::time(nullptr) - kStaleTemp;
    for (const Entry& file : entries) {
      const bool is_stale = is_temp(file.name) && file.used.tv_sec < stale;
      if (is_stale && is_written_by_cache(folder, file.name)) {
        unlinkat(folder, file.name.c_str(), 0);
      }
    }
    std::erase_if(entries, [](const Entry& file) { return !is_entry(file.name); });
    int64_t total = 0;
    for (const Entry& entry : entries) total += entry.bytes;
    if (total <= most_bytes_) return;
    std::ranges::sort(entries, {}, [](const Entry& entry) {
      return std::pair(entry.used.tv_sec, entry.used.tv_nsec);
    });
    for (const Entry& entry : entries) {
      if (total <= most_bytes_ / 4 * 3) break;
      total -= entry.bytes;
      if (!is_written_by_cache(folder, entry.name)) continue;
      if (unlinkat(folder, entry.name.c_str(), 0) == 0) counts_.evicted++;
    }
  }

  std::atomic<bool> is_on_, can_write_ = true;
  PrivateFolder folder_;
  const int64_t most_bytes_;
  mutable std::mutex mutex_;
  bool has_warned_ = false;
  int64_t unseen_bytes_ = 0;  // written since the folder was looked at
  Counts counts_;
};

KernelCache::KernelCache(const std::string& folder, int64_t most_bytes)
    : folder_(std::make_unique<Folder>(folder, most_bytes)) {}
KernelCache::~KernelCache() = default;

std::optional<std::vector<std::byte>> KernelCache::get(const Hash128& key) {
  return folder_->get(key);
}
void KernelCache::put(const Hash128& key, std::span<const std::byte> bytes) {
  folder_->put(key, bytes);
}
void KernelCache::remove(const Hash128& key) { folder_->remove(key); }
KernelCache::Counts KernelCache::counts() const { return folder_->counts(); }

std::shared_ptr<KernelCache> kernel_cache() {
  static auto& mutex = *new std::mutex;
  static auto& current = *new std::shared_ptr<KernelCache>;
  static auto& settings = *new std::pair<std::string, int64_t>;
  const std::lock_guard lock(mutex);
  const std::pair wanted(config().cache_dir, config().most_cache_bytes);
  if (!current || settings != wanted) {
    current = std::make_shared<KernelCache>(wanted.first, wanted.second);
    settings = wanted;
  }
  return current;
}

}  // namespace weft
