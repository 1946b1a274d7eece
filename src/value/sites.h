// Lines of users' programs that Values come from, where somebody wants to know.
#pragma once

#include <atomic>
#include <cstdint>

namespace weft {

class Value;

// The line that the calling thread executes, as a number of site_number(); 0: it is not known.
using SiteSource = uint32_t (*)();
// From now on every Value is noted with the line that made it; null: none is.
void note_sites(SiteSource source);
uint32_t site_of_value(const Value& value);  // 0: none
uint32_t site_of_call();                     // the line that this thread executes; 0: none

// Values made meanwhile by this thread come from this line: those of a formula that is written out.
class SiteScope {
 public:
  explicit SiteScope(uint32_t site);
  SiteScope(const SiteScope&) = delete;
  SiteScope& operator=(const SiteScope&) = delete;
  ~SiteScope();

 private:
  uint32_t outer_;
};

namespace detail {
extern std::atomic<SiteSource> site_source;
void note_site(const Value* value);
void forget_site(const Value* value);
}  // namespace detail

inline bool sites_are_noted() {
  return detail::site_source.load(std::memory_order_relaxed) != nullptr;
}

}  // namespace weft
