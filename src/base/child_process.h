// A program run to its end.
#pragma once

#include <string>
#include <vector>

namespace weft {

struct ChildResult {
  enum class End { kExited, kKilled, kTimedOut };
  End end = End::kExited;
  int code = 0;        // of kExited the status, of kKilled the signal
  std::string output;  // what it wrote to its standard output and error, of which not too much
};

// `arguments[0]` is the path of the program. Its standard input is the file `input`; `environment`
// (NAME=value) replaces variables of this process. When it ends, after `seconds`, and when the call
// is stopped (base/interrupt.h), it is killed, and all that it started in its process group with
// it; what it started elsewhere is not waited for. Leaves no zombie. Throws Error when it cannot be
// started.
ChildResult run_child(const std::vector<std::string>& arguments, const std::string& input,
                      const std::vector<std::string>& environment, int seconds);

// The file of a program in the folders of PATH, or `name` itself where it is a path that can be
// executed; empty when there is none.
std::string find_program(const std::string& name);

// A new folder that goes with everything in it.
class TempFolder {
 public:
  TempFolder();  // throws Error
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  ~TempFolder();

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace weft
