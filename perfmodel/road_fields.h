#pragma once
// The fields of both roads as they are stored: in plans, clusters, samples and a probe's settings.

#include <string_view>
#include <utility>

#include "perfmodel/base/fields.h"
#include "perfmodel/plan.h"

namespace commtune {

inline constexpr std::uint64_t kMostProcesses = 1'000'000;  ///< workers or servers of a plan

inline constexpr std::pair<std::string_view, Collective> kCollectives[] = {
    {"ring", Collective::kRing},
    {"halving-doubling", Collective::kHalvingDoubling},
    {"recursive-doubling", Collective::kRecursiveDoubling},
    {"one-shot", Collective::kOneShot},
    {"double-binary-tree", Collective::kDoubleBinaryTree},
    {"hierarchical", Collective::kHierarchical},
    {"library", Collective::kLibrary}};
inline constexpr std::pair<std::string_view, Placement> kPlacements[] = {
    {"colocated", Placement::kColocated}, {"dedicated", Placement::kDedicated}};
inline constexpr std::pair<std::string_view, Assignment> kAssignments[] = {{"even", Assignment::kEven},
                                                                           {"hashed", Assignment::kHashed}};
inline constexpr std::pair<std::string_view, LocalSum> kLocalSums[] = {{"none", LocalSum::kNone},
                                                                       {"first", LocalSum::kFirst}};

template <typename Visitor, fields::Of<AllReduce> Given>
void visit_fields(Visitor& visit, Given& road) {
  visit.constant("kind", "all-to-all");
  visit("algorithm", road.algorithm, fields::OneOf{kCollectives});
}

template <typename Visitor, fields::Of<ParameterServer> Given>
void visit_fields(Visitor& visit, Given& road) {
  visit.constant("kind", "parameter-server");
  visit("servers", road.servers, fields::Whole{1, kMostProcesses});
  visit("placement", road.placement, fields::OneOf{kPlacements});
  visit("assignment", road.assignment, fields::OneOf{kAssignments});
  visit.when_set("local_sum", road.local_sum, fields::OneOf{kLocalSums});
  visit.when_set("first", road.first, fields::Whole{0, kMostProcesses - 1});
}

/// Which of the two it is, its "kind" says. As road_from_json() and to_json().
void read_fields(const JsonPlace& place, Road& road);
nlohmann::json write_fields(const Road& road);
void digest_fields(Digest& digest, const Road& road);

}  // namespace commtune
