#include "tuner/search/atoms.h"

#include <algorithm>
#include <cmath>

namespace commtune::tuner {

namespace {

Atom empty_atom(const Workload& work, std::uint32_t layer) {
  Atom atom;
  atom.ready = work.ready[layer];
  atom.tail = work.tail[layer];
  return atom;
}

void add(Atom& atom, const Workload& work, const Piece& piece, std::uint32_t layer) {
  atom.pieces.push_back(piece);
  atom.layers.push_back(layer);
  atom.bytes += piece.length.count;
  atom.ready = std::max(atom.ready, work.ready[layer]);
  atom.tail = std::max(atom.tail, work.tail[layer]);
}

/// A large tensor in equal parts of whole elements.
void cut(std::vector<Atom>& atoms, const Planning& job, TensorId id, std::uint64_t parts) {
  const TensorRef tensor = job.work.tensors[id];
  const std::uint64_t element = element_size(job.profile.type).count, elements = tensor.bytes.count / element;
  for (std::uint64_t i = 0; i < parts; ++i) {
    const std::uint64_t from = elements * i / parts * element, until = elements * (i + 1) / parts * element;
    atoms.push_back(empty_atom(job.work, tensor.layer));
    add(atoms.back(), job.work, {id, Bytes{from}, Bytes{until - from}}, tensor.layer);
  }
}

}  // namespace

std::vector<Atom> atoms_of(const Planning& job, const AtomOptions& options) {
  const Workload& work = job.work;
  const double total = static_cast<double>(work.total_bytes);
  const double most = options.share * total, largest = std::max(options.cut_share * total, 1.0);
  const double longest = options.time_share * work.compute();
  std::vector<Atom> atoms;
  bool open = false;
  for (auto id = static_cast<TensorId>(work.tensors.size()); id-- > 0;) {
    const TensorRef tensor = work.tensors[id];
    const double bytes = static_cast<double>(tensor.bytes.count);
    const auto parts = static_cast<std::uint64_t>(std::ceil(bytes / largest));
    if (parts > 1 && tensor.bytes.count / parts >= options.smallest_cut) {
      cut(atoms, job, id, parts);
      open = false;
      continue;
    }
    const bool joins = open && static_cast<double>(atoms.back().bytes) + bytes <= most &&
                       work.ready[tensor.layer] - work.ready[atoms.back().layers.front()] <= longest;
    if (!joins) atoms.push_back(empty_atom(work, tensor.layer));
    add(atoms.back(), work, {id, Bytes{0}, tensor.bytes}, tensor.layer);
    open = true;
  }
  return atoms;
}

}  // namespace commtune::tuner
