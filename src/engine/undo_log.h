// What kernels have overwritten, to be put back where a run is stopped.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/ref.h"
#include "runtime/buffer.h"

namespace weft {

// Seconds that a kernel takes, roughly.
inline double seconds_of_work(uint64_t bytes, uint64_t flops) {
  return double(bytes + flops) * 1e-10;
}

// A run of kernels can be stopped as long as all that it has written to what the program holds can
// be put back. Copies are made only where the kernels that follow take so long that one might want
// to stop them, and that the copies do not matter: else the run goes on to its end.
class UndoLog {
 public:
  UndoLog() = default;
  UndoLog(const UndoLog&) = delete;
  UndoLog& operator=(const UndoLog&) = delete;

  bool is_whole() const { return is_whole_; }
  // Before a kernel writes to this memory; the kernels after it take `rest` seconds.
  void will_write(Buffer& memory, double rest);
  // Where it is whole: all is as it was before the run.
  void undo();

 private:
  bool is_whole_ = true;
  double seconds_ = 0;                                       // that copies take
  std::vector<std::pair<Ref<Buffer>, Ref<Buffer>>> copies_;  // of the first, in the second
};

}  // namespace weft
