#pragma once
// What messages of a road wait for and how they may overlap. MODEL.md section 4.5.

#include "perfmodel/cost/priced_road.h"
#include "perfmodel/cost/road_cost.h"
#include "perfmodel/plan.h"

namespace commtune {

/// What messages of the road wait for and how they may overlap; their times are known already.
void add_channel(RoadCost& cost, const AllReduce& road, PricedRoad& priced);
void add_channel(RoadCost& cost, const ParameterServer& road, PricedRoad& priced);

}  // namespace commtune
