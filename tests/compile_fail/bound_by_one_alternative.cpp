// expect: the replacement uses a name that the pattern does not bind
#include "rewrite/rule.h"
using namespace weft;
using namespace weft::names;
constexpr Rule kRules[] = {rule("mistake", op(Op::NEG, either(x + y, x)), y)};
