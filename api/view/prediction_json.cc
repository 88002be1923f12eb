#include "api/view/prediction_json.h"

#include <nlohmann/json.hpp>

namespace commtune::api {

const char* basis_name(Basis basis) { return basis == Basis::kMeasured ? "measured" : "formula"; }

nlohmann::json prediction_to_json(const Prediction& prediction) {
  return {{"iteration_seconds", prediction.iteration.count()},
          {"compute_seconds", prediction.compute.count()},
          {"exposed_seconds", prediction.exposed.count()},
          {"hidden_seconds", prediction.hidden().count()},
          {"communication_seconds", prediction.communication.count()},
          {"binding", to_string(prediction.binding)},
          {"basis", basis_name(prediction.basis)},
          {"extrapolated", prediction.extrapolated}};
}

}  // namespace commtune::api
