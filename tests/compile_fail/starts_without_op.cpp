// expect: the pattern must start with an op
#include "rewrite/rule.h"
using namespace weft;
using namespace weft::names;
constexpr Rule kRules[] = {rule("mistake", x, x)};
