// Optimisations by rules of thumb.
#include "codegen/opt/choose_opts.h"

#include "codegen/opt/opt.h"
#include "codegen/target.h"
#include "ir/node.h"

namespace weft {

OptList choose_opts(UOp, const Target&) { return {}; }

}  // namespace weft
