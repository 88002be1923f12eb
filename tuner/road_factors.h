#pragma once
// What runs of whole plans tell of their roads' costs: by how much the start-ups are off, and the times per
// byte. MODEL.md section 7.2.

#include <span>
#include <vector>

#include "perfmodel/cluster.h"
#include "perfmodel/cost/road_factor.h"
#include "perfmodel/plan.h"
#include "perfmodel/profile.h"
#include "tuner/tuner.h"

namespace commtune::tuner {

/// What a measured plan tells of its road, under the costs that it was predicted with: CheckedPlan::factor,
/// deviation and predicted, from its measured time and half width.
void find_factor(CheckedPlan& checked, const Plan& plan, const Profile& profile, const Cluster& cluster);

/// That of a road over a transport; nullptr where there is none.
const RoadFactor* factor_of(const std::vector<RoadFactor>& factors, const TransportRoad& on);

/// The factors of each road of which a plan tells anything, over each transport. One plan tells one thing of
/// two unknowns: the rest is how little either may be off. A second one with other messages tells them apart.
///
/// checked  as find_factor() left them
/// plans    those that were run, in the same order
/// cluster  that they were predicted with
std::vector<RoadFactor> road_factors(std::span<const CheckedPlan> checked, std::span<const Plan> plans,
                                     const Profile& profile, const Cluster& cluster);

/// How much longer than by its road's costs a plan took that tells nothing of them; 0 where they explain it.
///
/// cluster  with those costs as they are known after the runs
Seconds late_by(const CheckedPlan& checked, const Plan& plan, const Profile& profile, const Cluster& cluster);

}  // namespace commtune::tuner
