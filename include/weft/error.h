// The kinds of error that weft raises. User errors say what was given and what is allowed;
// internal errors name the invariant that broke.
#pragma once

#include <stdexcept>
#include <string>

namespace weft {

class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// What a caller did wrong. Python sees ValueError, TypeError, IndexError and RuntimeError.
class ShapeError : public Error {
  using Error::Error;
};
class DTypeError : public Error {
  using Error::Error;
};
class IndexError : public Error {
  using Error::Error;
};
class DeviceError : public Error {
  using Error::Error;
};
// A kernel that could not be made into a program.
class CompileError : public Error {
  using Error::Error;
};
// A function that cannot be captured, or whose capture would not give what the function gives.
class JitError : public Error {
  using Error::Error;
};
class ParseError : public Error {
  using Error::Error;
};

// A graph that breaks the spec of its stage.
class SpecError : public Error {
  using Error::Error;
};

// weft broke one of its own invariants.
class InternalError : public Error {
  using Error::Error;
};

}  // namespace weft
