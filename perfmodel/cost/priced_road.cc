#include "perfmodel/cost/priced_road.h"

#include "perfmodel/base/error.h"
#include "perfmodel/cost/calibration.h"
#include "perfmodel/cost/road_kind.h"

namespace commtune {

std::optional<Formula> streams_by_formula(PricedRoad& priced) {
  try {
    const OperationFit* stream =
        nearest_fit(priced.road, priced.cluster, priced.workers, SendMode::kStreamed);
    if (stream == nullptr) return std::nullopt;
    const Calibration calibrated = calibration_of_streams(*stream, priced.cluster);
    Formula formula = priced.formula();
    for (StageCost* stage : {&formula.both, &formula.reduce, &formula.distribute}) {
      stage->occupancy = calibrated(stage->occupancy);
    }
    return formula;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kNotFound) throw;
    return std::nullopt;
  }
}

StageCost formula_of_stage(PricedRoad& priced, StageCost Formula::*stage) {
  try {
    return priced.formula().*stage;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kNotFound) throw;
    return {};
  }
}

bool stages_were_measured(const PricedRoad& priced) {
  const Operations named = operations_of(priced.road);
  const auto measured = [&](Operation operation) {
    return find_operation(priced.cluster, priced.road, operation, priced.workers) != nullptr;
  };
  return measured(named.reduce) && measured(named.distribute);
}

}  // namespace commtune
