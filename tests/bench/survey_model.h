#pragma once
// The survey's cluster as commtune sees it: from its probes to predictions of its rows.
//
// Shi et al., A Quantitative Survey of Communication Optimizations in Distributed Deep Learning, IEEE Network
// 2021: up to 8 hosts of 4 RTX 2080 Ti. What is known before any method is predicted: the single-GPU
// iterations, the BSP-A2A and BSP-PS rows (each one transfer of all gradients at 102, 440 and 1345 MB), and
// the point-to-point figures. What these cannot give is fitted once for the whole table on its 4- and 8-GPU
// rows: Constants. A road of which a results file has no such row cannot be priced there.

#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "perfmodel/cost/road_cost.h"
#include "perfmodel/plan.h"
#include "perfmodel/profile.h"
#include "perfmodel/simulate/simulate.h"
#include "tuner/planning.h"

namespace commtune::bench {

/// One measured cell of Figure 4.
struct SurveyRow {
  std::string model, method;
  int gpus = 1;
  double seconds = 0;
};

/// A network's rows.
struct SurveyResults {
  std::string network;
  std::vector<SurveyRow> rows;
  std::map<std::string, double> single_gpu;  ///< seconds per iteration on one GPU, by model

  /// Of one cell, where it was published.
  std::optional<double> seconds(std::string_view model, std::string_view method, int gpus) const;
};

/// Reads the columns model, method, network, n_gpus and iteration_ms_derived of a results file; rows of
/// anything but the seven methods and the single GPU (SGD-1GPU) are passed over. A network's rows are its
/// own, in the order in which networks appear.
///
/// baselines  results whose single-GPU rows serve the models that have none in the file; empty: none do
/// throws     Error{kBadInput} for a file that cannot be read, lacks a column, has no row of the seven
/// methods
///            or a model without a single-GPU row
std::vector<SurveyResults> read_surveys(const std::string& file, const std::string& baselines = {});
/// Of a file with one network. Throws as read_surveys, and Error{kBadInput} for several networks.
SurveyResults read_survey(const std::string& file);

/// What no probe gives. None depends on model, method or N, only on what a plan does. Of the table's methods
/// ByteScheduler-A2A alone has a barrier per layer, so the cost of one cannot be told from that of its
/// scheduler in Python: for other plans with such a barrier it is the most that it may be.
struct Constants {
  double contention = 0;   ///< traffic takes longer by this ratio while compute runs (shared PCIe and GPU)
  double negotiation = 0;  ///< seconds per all-reduce message and worker: NCCL's start and Horovod's talk
  double update_per_byte = 0;  ///< optimizer's seconds per gradient byte, taken out of the compute time
  double layer_barrier = 0;    ///< seconds per layer that waits for its own gradients, of any plan

  static constexpr std::size_t kCount = 4;
  std::array<double, kCount> values() const {
    return {contention, negotiation, update_per_byte, layer_barrier};
  }
  static Constants from(const std::array<double, kCount>& v) { return {v[0], v[1], v[2], v[3]}; }
};

inline const std::vector<std::string_view> kSurveyMethods = {
    "BSP-PS", "BSP-A2A", "WFBP-PS", "WFBP-A2A", "MG-WFBP", "ByteScheduler-PS", "ByteScheduler-A2A"};
/// Those that are predicted: the other two are probes.
inline const std::vector<std::string_view> kPredictedMethods = {"WFBP-PS", "WFBP-A2A", "MG-WFBP",
                                                                "ByteScheduler-PS", "ByteScheduler-A2A"};
inline const std::vector<std::string_view> kSurveyModels = {"ResNet-50", "BERT-Base", "BERT-Large"};
inline const std::vector<int> kSurveyGpus = {4, 8, 16, 32};
/// The constants are fitted on rows with at most so many.
inline constexpr int kFittedGpus = 8;

class SurveyModel {
 public:
  explicit SurveyModel(const SurveyResults& results);

  /// Predicted iteration of a method as the survey ran it; nothing where the results cannot price its road.
  /// For the probes this is the measurement itself.
  std::optional<double> predict(std::string_view model, std::string_view method, int gpus,
                                const Constants& constants) const;

  /// What the joint search finds on the roads that can be priced, with a barrier per layer or with one for
  /// all, whichever is faster; nothing where no road can be.
  std::optional<double> joint(std::string_view model, int gpus, const Constants& constants) const;

  /// Predicted iteration of any plan for this model; its barrier and its road say what it is charged.
  double time_of(std::string_view model, const Plan& plan, const RoadCost& cost,
                 const Constants& constants) const;

  /// Time per byte of one transfer of all of a model's gradients: its bulk-synchronous row. Nothing where
  /// there is none, or none that shows any communication.
  std::optional<double> seconds_per_byte(std::string_view model, std::string_view architecture,
                                         int gpus) const;

  /// A road as its probe row prices it; nothing where there is none.
  std::optional<tuner::RoadOption> road(std::string_view model, std::string_view architecture, int gpus,
                                        const Constants& constants) const;

 private:
  Profile profile(std::string_view model, const Constants& constants, Barrier barrier) const;
  double joint_charged(std::string_view model, int gpus, const std::vector<tuner::RoadOption>& roads,
                       const Constants& constants, Barrier charged) const;

  const SurveyResults& results_;
  std::map<std::string, Profile, std::less<>> profiles_;
  double point_to_point_latency_ = 0;
};

/// Least squares of log(predicted / measured) over the rows with at most 8 GPUs whose road can be priced, and
/// one standard error of each constant from the curvature there.
struct FittedConstants {
  Constants best;
  std::array<double, Constants::kCount> standard_error{};
  double residual = 0;  ///< root mean square of the logarithms
  int rows = 0;
};
FittedConstants fit_constants(const SurveyModel& model, const SurveyResults& results);

}  // namespace commtune::bench
