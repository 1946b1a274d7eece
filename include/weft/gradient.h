// Whether operations on tensors are differentiated: of each thread, on at first.
#pragma once

namespace weft {

bool gradients_are_on();
void set_gradients(bool on);

// While it lives, gradients are off (or on) in this thread:
//
//   { weft::NoGrad off; p.assign(p - p.grad()->mul(0.1)); }
class GradMode {
 public:
  explicit GradMode(bool is_on);
  GradMode(const GradMode&) = delete;
  GradMode& operator=(const GradMode&) = delete;
  ~GradMode();

 private:
  bool before_;
};

class NoGrad : public GradMode {
 public:
  NoGrad() : GradMode(false) {}
};

}  // namespace weft
