// A table without a mistake: this one compiles.
#include "rewrite/rule.h"
using namespace weft;
using namespace weft::names;
constexpr Rule kRules[] = {rule("fine", x + c0, x).when(c0 > 0)};
static_assert(kRules[0].name == "fine");
