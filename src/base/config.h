// The configuration of the process. The environment is read here and nowhere else.
#pragma once

namespace weft {

struct Config {
  int debug = 0;  // WEFT_DEBUG 0..6: how much is printed while compiling and running
  int stats = 0;  // WEFT_STATS 0..2: 1 counts and times every rule, 2 also prints every match
};

// Read from the environment at first use; a value that is no number is an error that names it.
Config& config();

// What the environment says now, for tests.
Config config_from_environment();

}  // namespace weft
