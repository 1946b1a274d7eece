// Whether programs train: functions that differ then (dropout) ask. One flag of the process.
#pragma once

namespace weft {

bool is_training();
void set_training(bool is_training);

}  // namespace weft
