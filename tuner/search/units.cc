#include "tuner/search/units.h"

#include <algorithm>
#include <cmath>

namespace commtune::tuner {

namespace {

SearchUnit empty_unit(const Workload& work, std::uint32_t layer) {
  SearchUnit unit;
  unit.ready = work.ready[layer];
  unit.tail = work.tail[layer];
  return unit;
}

void add(SearchUnit& unit, const Workload& work, const Piece& piece, std::uint32_t layer) {
  unit.pieces.push_back(piece);
  unit.layers.push_back(layer);
  unit.bytes += piece.length.count;
  unit.ready = std::max(unit.ready, work.ready[layer]);
  unit.tail = std::max(unit.tail, work.tail[layer]);
}

/// A large tensor in equal parts of whole elements.
void cut(std::vector<SearchUnit>& units, const Planning& job, TensorId id, std::uint64_t parts) {
  const TensorRef tensor = job.work.tensors[id];
  const std::uint64_t element = element_size(job.profile.type).count, elements = tensor.bytes.count / element;
  for (std::uint64_t i = 0; i < parts; ++i) {
    const std::uint64_t from = elements * i / parts * element, until = elements * (i + 1) / parts * element;
    units.push_back(empty_unit(job.work, tensor.layer));
    add(units.back(), job.work, {id, Bytes{from}, Bytes{until - from}}, tensor.layer);
  }
}

}  // namespace

std::vector<SearchUnit> units_of(const Planning& job, const SearchUnitOptions& options) {
  const Workload& work = job.work;
  const double total = static_cast<double>(work.total_bytes);
  const double most = options.share * total, largest = std::max(options.cut_share * total, 1.0);
  const double longest = options.time_share * work.compute();
  std::vector<SearchUnit> units;
  bool open = false;
  for (auto id = static_cast<TensorId>(work.tensors.size()); id-- > 0;) {
    const TensorRef tensor = work.tensors[id];
    const double bytes = static_cast<double>(tensor.bytes.count);
    const auto parts = static_cast<std::uint64_t>(std::ceil(bytes / largest));
    if (parts > 1 && tensor.bytes.count / parts >= options.smallest_cut) {
      cut(units, job, id, parts);
      open = false;
      continue;
    }
    const bool joins = open && static_cast<double>(units.back().bytes) + bytes <= most &&
                       work.ready[tensor.layer] - work.ready[units.back().layers.front()] <= longest;
    if (!joins) units.push_back(empty_unit(work, tensor.layer));
    add(units.back(), work, {id, Bytes{0}, tensor.bytes}, tensor.layer);
    open = true;
  }
  return units;
}

}  // namespace commtune::tuner
