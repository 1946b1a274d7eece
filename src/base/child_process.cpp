// posix_spawn, a pipe for what the child says, and a clock.
#include "base/child_process.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/config.h"
#include "base/error.h"
#include "base/interrupt.h"

namespace weft {
namespace {

using Clock = std::chrono::steady_clock;
constexpr size_t kMostOutput = size_t(64) << 10;

class FileDescriptor {
 public:
  explicit FileDescriptor(int number = -1) : number_(number) {}
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  ~FileDescriptor() { close(); }
  int get() const { return number_; }
  void close() {
    if (number_ >= 0) ::close(number_);
    number_ = -1;
  }

 private:
  int number_;
};

// How a child is started: its files, its group, its signals.
class SpawnSetup {
 public:
  SpawnSetup(const std::string& input, int output) {
    posix_spawn_file_actions_init(&files_);
    posix_spawnattr_init(&attributes_);
    posix_spawn_file_actions_addopen(&files_, STDIN_FILENO, input.c_str(), O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files_, output, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&files_, output, STDERR_FILENO);
    sigset_t none, defaults;
    sigemptyset(&none);
    sigemptyset(&defaults);
    for (const int signal : {SIGPIPE, SIGINT, SIGTERM, SIGCHLD}) sigaddset(&defaults, signal);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setsigdefault(&attributes_, &defaults);
    posix_spawnattr_setpgroup(&attributes_, 0);
    posix_spawnattr_setflags(
        &attributes_, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
  SpawnSetup(const SpawnSetup&) = delete;
  SpawnSetup& operator=(const SpawnSetup&) = delete;
  ~SpawnSetup() {
    posix_spawn_file_actions_destroy(&files_);
    posix_spawnattr_destroy(&attributes_);
  }

  pid_t spawn(const std::vector<std::string>& arguments,
              const std::vector<std::string>& variables) {
    std::vector<char*> argv, envp;
    for (const std::string& a : arguments) argv.push_back(const_cast<char*>(a.c_str()));
    argv.push_back(nullptr);
    const auto is_replaced = [&](std::string_view variable) {
      const std::string_view name = variable.substr(0, variable.find('=') + 1);
      return std::ranges::any_of(variables,
                                 [&](const std::string& v) { return v.starts_with(name); });
    };
    for (char** v = environ; *v != nullptr; v++) {
      if (!is_replaced(*v)) envp.push_back(*v);
    }
    for (const std::string& v : variables) envp.push_back(const_cast<char*>(v.c_str()));
    envp.push_back(nullptr);
    pid_t pid = 0;
    const int error = posix_spawn(&pid, argv[0], &files_, &attributes_, argv.data(), envp.data());
    if (error != 0) {
      throw Error(
          fmt::format("cannot run {}: {}", arguments[0], std::generic_category().message(error)));
    }
    return pid;
  }

 private:
  posix_spawn_file_actions_t files_{};
  posix_spawnattr_t attributes_{};
};

// Until then, or until it is time to look whether to go on.
int milliseconds_to(Clock::time_point deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
  return int(std::clamp(left, std::chrono::milliseconds(0), kInterruptEvery).count());
}

// Someone else may have waited for it: then the status stays as it is.
void wait_for(pid_t pid, int& status) {
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
}

// A child in a process group of its own, from its start to its end.
class Child {
 public:
  explicit Child(pid_t pid) : pid_(pid) {}
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    if (!is_over_) end();
  }

  // It stays a zombie, whose number no other process or group is given, unless somebody else waits
  // for all children.
  bool has_ended() {
    siginfo_t info{};
    const int result = waitid(P_PID, id_t(pid_), &info, WEXITED | WNOHANG | WNOWAIT);
    is_gone_ = result != 0 && errno == ECHILD;
    return is_gone_ || (result == 0 && info.si_pid != 0);
  }

  // Kills it and all that it started in its group. Its status, where it had ended by itself.
  int end() {
    is_over_ = true;
    int status = 0;
    if (is_gone_) return status;
    kill(-pid_, SIGKILL);
    wait_for(pid_, status);
    return status;
  }

 private:
  pid_t pid_;
  bool is_gone_ = false, is_over_ = false;
};

// What is in the pipe now, of which not too much is kept. False when all its ends are closed.
bool read_some(int pipe, std::string& output) {
  std::array<char, 4096> chunk{};
  const ssize_t count = read(pipe, chunk.data(), chunk.size());
  if (count < 0) return errno == EINTR || errno == EAGAIN;
  output.append(chunk.data(), std::min(size_t(count), kMostOutput - output.size()));
  return count > 0;
}

// What a child that has ended left in the pipe. Others that it started may hold the pipe, and write
// to it, for ever: what they say is not waited for.
void read_rest(int pipe, std::string& output) {
  pollfd waiting{pipe, POLLIN, 0};
  size_t chunks = kMostOutput / 1024;
  while (chunks-- > 0 && poll(&waiting, 1, 0) > 0 && read_some(pipe, output)) continue;
}

// False when the deadline comes first. Throws Stopped.
bool read_until_end(Child& child, int pipe, Clock::time_point deadline, std::string& output) {
  bool is_open = true;
  auto pause = std::chrono::microseconds(20);
  while (!child.has_ended()) {
    if (Clock::now() >= deadline) return false;
    check_interrupt();
    if (!is_open) {  // there is next to nothing left to do
      std::this_thread::sleep_for(pause);
      pause = std::min(2 * pause, decltype(pause)(5000));
      continue;
    }
    pollfd waiting{pipe, POLLIN, 0};
    if (poll(&waiting, 1, milliseconds_to(deadline)) > 0) is_open = read_some(pipe, output);
  }
  if (is_open) read_rest(pipe, output);
  return true;
}

}  // namespace

ChildResult run_child(const std::vector<std::string>& arguments, const std::string& input,
                      const std::vector<std::string>& environment, int seconds) {
  const Clock::time_point deadline = Clock::now() + std::chrono::seconds(seconds);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    throw Error(
        fmt::format("cannot run {}: {}", arguments[0], std::generic_category().message(errno)));
  }
  const FileDescriptor from_child(ends[0]);
  FileDescriptor to_parent(ends[1]);
  Child child(SpawnSetup(input, to_parent.get()).spawn(arguments, environment));
  to_parent.close();

  ChildResult result;
  const bool in_time = read_until_end(child, from_child.get(), deadline, result.output);
  const int status = child.end();
  if (!in_time) {
    result.end = ChildResult::End::kTimedOut;
  } else if (WIFSIGNALED(status)) {
    result.end = ChildResult::End::kKilled;
    result.code = WTERMSIG(status);
  } else {
    result.code = WEXITSTATUS(status);
  }
  return result;
}

std::string find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) {
    return access(name.c_str(), X_OK) == 0 ? name : std::string();
  }
  std::string_view path = config().search_path;
  while (!path.empty() && !name.empty()) {
    const size_t end = std::min(path.find(':'), path.size());
    std::string file = fmt::format("{}/{}", end == 0 ? "." : path.substr(0, end), name);
    if (access(file.c_str(), X_OK) == 0 && std::filesystem::is_regular_file(file)) return file;
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return {};
}

TempFolder::TempFolder() : path_(config().temp_dir + "/weft-XXXXXX") {
  if (mkdtemp(path_.data()) == nullptr) {
    throw Error(fmt::format("cannot make a folder in {}: {}", config().temp_dir,
                            std::generic_category().message(errno)));
  }
}

TempFolder::~TempFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace weft
