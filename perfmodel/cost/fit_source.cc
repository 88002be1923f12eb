#include "perfmodel/cost/fit_source.h"

namespace commtune {

namespace {

std::string what_of(LinkClass link) { return "link " + to_string(link); }

std::string what_of(const OperationFit* fit) {
  return to_string(fit->operation) + ", " + describe(fit->road) + ", " + std::to_string(fit->workers) +
         " workers";
}

void add(std::vector<FitSource>& sources, const FitSource& source) {
  if (!source.fit->curve.empty()) sources.push_back(source);
}

}  // namespace

std::string describe(const FitSource& source) {
  return std::visit([](const auto& of) { return what_of(of); }, source.of) + ", " +
         std::string(source.setting);
}

std::vector<FitSource> fits_of(const OperationFit& operation) {
  std::vector<FitSource> sources;
  add(sources, {&operation.alone, &operation, "alone"});
  add(sources, {&operation.streamed, &operation, "streamed"});
  return sources;
}

std::vector<FitSource> link_fits_of(const Cluster& cluster) {
  std::vector<FitSource> sources;
  for (const auto& [kind, link] : cluster.links) {
    add(sources, {&link.alone, kind, "alone"});
    add(sources, {&link.streamed, kind, "streamed"});
    add(sources, {&link.duplex, kind, "duplex"});
  }
  return sources;
}

std::vector<FitSource> fits_of(const Cluster& cluster) {
  std::vector<FitSource> sources = link_fits_of(cluster);
  for (const OperationFit& operation : cluster.operations) {
    for (const FitSource& source : fits_of(operation)) sources.push_back(source);
  }
  return sources;
}

}  // namespace commtune
