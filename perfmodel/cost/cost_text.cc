#include "perfmodel/cost/cost_text.h"

namespace commtune {

std::string counted(int count, const std::string& what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

std::string range_text(const RoadCost& cost) {
  return format_size(cost.measured_smallest) + " to " + format_size(cost.measured_largest);
}

}  // namespace commtune
