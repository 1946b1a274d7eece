// Somebody who is told of the operations that a thread does on tensors: Recording.
#pragma once

namespace weft {

class Storage;

class OperationWatch {
 public:
  OperationWatch() = default;
  OperationWatch(const OperationWatch&) = delete;
  OperationWatch& operator=(const OperationWatch&) = delete;
  virtual ~OperationWatch() = default;

  virtual void made(Storage& result) = 0;      // of a new tensor
  virtual void will_write(Storage& to) = 0;    // before any write
  virtual void wrote(Storage& to) = 0;         // after it
  virtual void will_collect(Storage& by) = 0;  // before the gradient by a leaf is another storage

  // Watches this thread while it lives. One at a time.
  class Scope {
   public:
    explicit Scope(OperationWatch* watch);  // null: nobody
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    ~Scope();

   private:
    OperationWatch* before_;
  };
};

// That of this thread; mostly null.
OperationWatch* operation_watch();

}  // namespace weft
