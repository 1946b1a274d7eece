// Ending a call of weft's before its work is done: what Ctrl-C does.
#pragma once

#include <exception>
#include <memory>
#include <utility>

namespace weft {

// What comes out of a call that was ended. Not an Error: nothing is wrong with what was asked for,
// every tensor reads as if the call had not been made, and the call can be made again.
class Interrupted : public std::exception {
 public:
  Interrupted() = default;
  // `reason` is for whoever asked for it: the exception of another language, for example.
  explicit Interrupted(std::shared_ptr<void> reason) : reason_(std::move(reason)) {}
  const char* what() const noexcept override { return "interrupted"; }
  const std::shared_ptr<void>& reason() const { return reason_; }

 private:
  std::shared_ptr<void> reason_;
};

// Ends the call that is under way, or else the next one: while it waits for another thread or for a
// compiler, between two kernels, between two steps of scheduling or of a search. It lasts until the
// running kernel has ended, and where kernels have begun to overwrite what the program still holds,
// until the rest of them have run, too. May be called by a signal handler and by any thread.
void request_interrupt() noexcept;

}  // namespace weft
