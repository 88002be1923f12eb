#include "probes/analysis/merged_samples.h"

#include <map>

namespace commtune::probes {

Sample merged(const std::vector<Sample>& group) {
  if (group.size() == 1) return group.front();
  std::vector<double> times;
  times.reserve(group.size());
  for (const Sample& sample : group) times.push_back(sample.time.count());
  const MedianInterval interval = median_interval(times);
  return {group.front().size, Seconds{interval.median}, Seconds{(interval.high - interval.low) / 2},
          static_cast<int>(times.size())};
}

std::vector<Sample> merged_by_size(const std::vector<Sample>& samples) {
  std::map<Bytes, std::vector<Sample>> by_size;
  for (const Sample& sample : samples) by_size[sample.size].push_back(sample);
  std::vector<Sample> result;
  result.reserve(by_size.size());
  for (const auto& [size, group] : by_size) result.push_back(merged(group));
  return result;
}

}  // namespace commtune::probes
