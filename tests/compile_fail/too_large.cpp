// expect: this pattern is too large
#include "rewrite/rule.h"
using namespace weft;
using namespace weft::names;
constexpr Pattern kHalf = ((x + y) + (x + y)) + ((x + y) + (x + y));
constexpr Rule kRules[] = {rule("mistake", kHalf* kHalf, x)};
