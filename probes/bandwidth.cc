#include "probes/bandwidth.h"

#include <variant>

#include "probes/targets.h"

namespace commtune::probes {

double bus_factor(const Road& road, Operation operation, int workers) {
  if (std::holds_alternative<ParameterServer>(road)) return bytes_sent(road, operation, workers);
  const double n = workers;
  const double stages = operation == Operation::kAllReduce ? 2 : 1;
  return stages * (n - 1) / n;
}

Bandwidth bandwidth(const Road& road, Operation operation, int workers, Bytes size, Seconds time) {
  const double algorithm = static_cast<double>(size.count) / time.count();
  return {algorithm, algorithm * bus_factor(road, operation, workers)};
}

}  // namespace commtune::probes
