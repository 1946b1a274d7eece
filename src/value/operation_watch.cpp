// The watch of each thread.
#include "value/operation_watch.h"

#include <utility>

namespace weft {
namespace {

thread_local OperationWatch* the_watch = nullptr;

}  // namespace

OperationWatch::Scope::Scope(OperationWatch* watch) : before_(std::exchange(the_watch, watch)) {}
OperationWatch::Scope::~Scope() { the_watch = before_; }
OperationWatch* operation_watch() { return the_watch; }

}  // namespace weft
