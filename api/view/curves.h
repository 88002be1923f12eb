#pragma once
// What a fit looks like beside what was measured: FitCurves of api/openapi.yaml.

#include <nlohmann/json.hpp>
#include <string>

#include "api/question/fit_marks.h"
#include "probes/analysis/links.h"
#include "store/store.h"

namespace commtune::api {

struct CurveRequest {
  int points = 200;     ///< measured points of a curve at most; thinned evenly, the first and last stay
  std::string subject;  ///< only this one; empty: all
  FitAge age;           ///< marks old fits
};

/// Reads the samples of the fit's probe. Fits of the same cluster, newest first, come along as "history".
nlohmann::json fit_curves_to_json(const Store& store, const FitRow& fit, const CurveRequest& request);

/// The links between hosts as the fit's probe found them: Links of api/openapi.yaml. Without a fit it says so
/// by "session": null and no links.
nlohmann::json links_to_json(const Store& store, const ClusterRow& cluster);

/// The same as values.
probes::LinkReport link_report(const Store& store, const ClusterRow& cluster);

}  // namespace commtune::api
