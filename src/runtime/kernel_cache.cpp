// <folder>/<2 digits of the key>/<the others>: a header, then the bytes.
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
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/config.h"
#include "base/hash.h"

namespace weft {
namespace {

constexpr std::array<char, 8> kMagic{'w', 'e', 'f', 't', 'k', 'c', '0', '1'};
constexpr std::time_t kUsedEvery = 3600;  // seconds, after which a read marks an entry as used
constexpr std::time_t kStaleTemp = 3600;  // seconds, after which a file half written is garbage
constexpr int64_t kMostEntry = int64_t(1) << 30;
constexpr std::string_view kTempMark = ".tmp";

struct Header {
  std::array<char, 8> magic = kMagic;
  Hash128 key;
  uint64_t size = 0;
  Hash128 checksum;
};

Hash128 checksum_of(std::span<const std::byte> bytes) {
  return hash_bytes_128({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
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

struct File {
  int number;
  ~File() {
    if (number >= 0) ::close(number);
  }
};

enum class Read : uint8_t { kAbsent, kDamaged, kWhole };

Read read_entry(const std::string& path, const Hash128& key, std::vector<std::byte>& bytes) {
  const File file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (file.number < 0) return Read::kAbsent;
  struct stat info{};
  Header header;
  if (fstat(file.number, &info) != 0 || !S_ISREG(info.st_mode) ||
      info.st_size < off_t(sizeof header) || !read_all(file.number, &header, sizeof header)) {
    return Read::kDamaged;
  }
  const bool is_ours = header.magic == kMagic && header.key == key &&
                       header.size <= uint64_t(kMostEntry) &&
                       uint64_t(info.st_size) == sizeof header + header.size;
  if (!is_ours) return Read::kDamaged;
  bytes.resize(header.size);
  if (!read_all(file.number, bytes.data(), bytes.size())) return Read::kDamaged;
  if (checksum_of(bytes) != header.checksum) return Read::kDamaged;
  if (std::time(nullptr) - info.st_mtime > kUsedEvery) futimens(file.number, nullptr);
  return Read::kWhole;
}

struct Entry {
  std::string path;
  int64_t bytes;
  timespec used;
};

// Entries, oldest first; files that someone left half written are removed.
std::vector<Entry> list_entries(const std::string& folder) {
  namespace fs = std::filesystem;
  std::vector<Entry> entries;
  std::error_code error;
  const std::time_t now = std::time(nullptr);
  for (fs::recursive_directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    const std::string path = it->path().string();
    struct stat info{};
    if (lstat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
    if (it->path().filename().string().find(kTempMark) != std::string::npos) {
      if (now - info.st_mtime > kStaleTemp) ::unlink(path.c_str());
      continue;
    }
    entries.push_back({path, int64_t(info.st_size), info.st_mtim});
  }
  std::ranges::sort(entries, [](const Entry& a, const Entry& b) {
    return std::pair(a.used.tv_sec, a.used.tv_nsec) < std::pair(b.used.tv_sec, b.used.tv_nsec);
  });
  return entries;
}

}  // namespace

class KernelCache::Folder {
 public:
  Folder(std::string path, int64_t most_bytes) : path_(std::move(path)), most_bytes_(most_bytes) {
    if (path_.empty() || most_bytes_ <= 0) return;
    struct stat info{};
    const bool exists = stat(path_.c_str(), &info) == 0;
    if (exists && (info.st_mode & S_IWOTH) != 0) {
      warn("not using", "everyone may write there");  // and what it holds would be run
      return;
    }
    can_read_ = true;
    can_write_ = true;
  }

  std::optional<std::vector<std::byte>> get(const Hash128& key) {
    std::vector<std::byte> bytes;
    const std::string path = can_read_ ? path_of(key) : std::string();
    const Read read = can_read_ ? read_entry(path, key, bytes) : Read::kAbsent;
    const std::lock_guard lock(mutex_);
    if (read == Read::kWhole) {
      counts_.hits++;
      return bytes;
    }
    counts_.misses++;
    if (read == Read::kDamaged) {
      counts_.damaged++;
      ::unlink(path.c_str());
    }
    return std::nullopt;
  }

  void put(const Hash128& key, std::span<const std::byte> bytes) {
    const std::lock_guard lock(mutex_);
    const auto size = int64_t(sizeof(Header) + bytes.size());
    if (!can_write_ || size > std::min(most_bytes_, kMostEntry)) return;
    if (!prepare_folder(key) || !write_entry(key, bytes)) {
      // Once: what went wrong with one goes wrong with the next.
      can_write_ = false;
      return;
    }
    counts_.written++;
    unseen_bytes_ += size;
    // Looking at the whole folder is slow: now and then is enough, also for many processes that
    // write one entry each.
    const bool is_due = unseen_bytes_ > most_bytes_ / 16 || key.low % 64 == 0;
    if (is_due) evict();
  }

  void remove(const Hash128& key) {
    if (can_write_) ::unlink(path_of(key).c_str());
  }

  Counts counts() const {
    const std::lock_guard lock(mutex_);
    return counts_;
  }

 private:
  std::string folder_of(const Hash128& key) const {
    return fmt::format("{}/{}", path_, key.hex().substr(0, 2));
  }
  std::string path_of(const Hash128& key) const {
    return fmt::format("{}/{}", folder_of(key), key.hex().substr(2));
  }

  void warn(std::string_view what, std::string_view why) const {
    fmt::print(stderr,
               "weft: compiled kernels are not kept: {} {}: {} (WEFT_CACHE_DIR says where, "
               "WEFT_CACHE_MB=0 turns it off)\n",
               what, path_, why);
  }
  void warn(std::string_view what) const { warn(what, std::generic_category().message(errno)); }

  bool prepare_folder(const Hash128& key) {
    if (!is_prepared_) {
      std::error_code error;
      std::filesystem::create_directories(std::filesystem::path(path_).parent_path(), error);
      if (::mkdir(path_.c_str(), 0700) != 0 && errno != EEXIST) {
        warn("cannot make");
        return false;
      }
      is_prepared_ = true;
    }
    if (::mkdir(folder_of(key).c_str(), 0700) != 0 && errno != EEXIST) {
      warn("cannot write to");
      return false;
    }
    return true;
  }

  bool write_entry(const Hash128& key, std::span<const std::byte> bytes) {
    static std::atomic<uint64_t> number = 0;
    const std::string path = path_of(key);
    const std::string temp = fmt::format("{}{}{}.{}", path, kTempMark, getpid(), number++);
    const File file{::open(temp.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600)};
    const Header header{.key = key, .size = uint64_t(bytes.size()), .checksum = checksum_of(bytes)};
    const bool is_written = file.number >= 0 && write_all(file.number, &header, sizeof header) &&
                            write_all(file.number, bytes.data(), bytes.size()) &&
                            ::rename(temp.c_str(), path.c_str()) == 0;
    if (!is_written) {
      warn("cannot write to");
      ::unlink(temp.c_str());
    }
    return is_written;
  }

  // Down to 3/4 of the bound, so that the next entries need no look.
  void evict() {
    unseen_bytes_ = 0;
    const std::vector<Entry> entries = list_entries(path_);
    int64_t total = 0;
    for (const Entry& entry : entries) total += entry.bytes;
    if (total <= most_bytes_) return;
    for (const Entry& entry : entries) {
      if (total <= most_bytes_ / 4 * 3) break;
      if (::unlink(entry.path.c_str()) == 0) counts_.evicted++;
      total -= entry.bytes;
    }
  }

  const std::string path_;
  const int64_t most_bytes_;
  mutable std::mutex mutex_;
  std::atomic<bool> can_read_ = false, can_write_ = false;
  bool is_prepared_ = false;
  int64_t unseen_bytes_ = 0;  // written since the folder was looked at
  Counts counts_;
};

KernelCache::KernelCache(std::string folder, int64_t most_bytes)
    : folder_(std::make_unique<Folder>(std::move(folder), most_bytes)) {}
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
