// expect: the condition uses a name that the pattern does not bind
#include "rewrite/rule.h"
using namespace weft;
using namespace weft::names;
constexpr Rule kRules[] = {rule("mistake", x + c0, x).when(c1 > 0)};
