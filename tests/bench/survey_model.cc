#include "tests/bench/survey_model.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <limits>
#include <sstream>

#include "perfmodel/base/error.h"
#include "perfmodel/bound/bound.h"
#include "perfmodel/shipped_profiles.h"
#include "tuner/messages.h"
#include "tuner/methods/bsp.h"
#include "tuner/methods/byte_scheduler.h"
#include "tuner/methods/mg_wfbp.h"
#include "tuner/methods/wfbp.h"
#include "tuner/search/search.h"

namespace commtune::bench {

namespace {

using tuner::Planning;
using tuner::PredictedPlan;
using tuner::RoadOption;

/// ByteScheduler on all-reduce as the survey's scripts set it.
constexpr Bytes kPartition{16'000'000}, kCredit{64'000'000};

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  for (const char c : line) {
    if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      cells.emplace_back();
    } else if (c != '\r') {
      cells.back() += c;
    }
  }
  return cells;
}

std::size_t column(const std::vector<std::string>& header, const std::string& name, const std::string& file) {
  const auto found = std::find(header.begin(), header.end(), name);
  if (found == header.end()) throw Error(ErrorCode::kBadInput, file + ": has no column " + name);
  return static_cast<std::size_t>(found - header.begin());
}

/// Latency of a message between hosts, by the survey's printed figures (lines through 16 KiB and 1 MiB).
double latency_of(const std::string& network) {
  if (network.find("IB") != std::string::npos) return 6.4e-6;
  if (network.find("100G") != std::string::npos) return 20.9e-6;
  return 94.7e-6;
}

std::string profile_name(std::string_view model) {
  if (model == "ResNet-50") return "resnet50";
  return model == "BERT-Base" ? "bert_base" : "bert_large";
}

bool all_reduce(std::string_view method) { return method.ends_with("A2A") || method == "MG-WFBP"; }

std::string_view architecture_of_method(std::string_view method) { return all_reduce(method) ? "A2A" : "PS"; }

/// A method's plan as the survey set it.
Plan plan_of(std::string_view method, const Planning& job, const RoadOption& option) {
  if (method == "MG-WFBP") return tuner::mg_wfbp(job, option);
  if (method == "ByteScheduler-A2A") {
    return tuner::byte_scheduler(job, option, {kPartition, kCredit, Barrier::kPerLayer});
  }
  if (method == "ByteScheduler-PS") {
    return tuner::byte_scheduler(job, option, {tuner::kServerPartition, tuner::kUnlimited, Barrier::kFull});
  }
  return tuner::wfbp(job, option);
}

}  // namespace

std::optional<double> SurveyResults::seconds(std::string_view model, std::string_view method,
                                             int gpus) const {
  for (const SurveyRow& row : rows) {
    if (row.model == model && row.method == method && row.gpus == gpus) return row.seconds;
  }
  return {};
}

namespace {

/// A row of any method.
struct AnyRow {
  SurveyRow row;
  std::string network;
};

std::vector<AnyRow> rows_of(const std::string& file) {
  std::ifstream in(file);
  std::string line;
  if (!std::getline(in, line)) throw Error(ErrorCode::kBadInput, file + ": cannot be read or is empty");
  const std::vector<std::string> header = cells_of(line);
  const std::size_t model = column(header, "model", file), method = column(header, "method", file),
                    network = column(header, "network", file), gpus = column(header, "n_gpus", file),
                    time = column(header, "iteration_ms_derived", file);
  std::vector<AnyRow> rows;
  while (std::getline(in, line)) {
    const std::vector<std::string> cells = cells_of(line);
    if (cells.size() <= std::max({model, method, network, gpus, time}) || cells[time].empty()) continue;
    rows.push_back({{cells[model], cells[method], std::atoi(cells[gpus].c_str()),
                     std::strtod(cells[time].c_str(), nullptr) / 1e3},
                    cells[network]});
  }
  return rows;
}

bool is_single_gpu(const AnyRow& any) { return any.row.method == "SGD-1GPU"; }

/// Adds the single-GPU rows of the models that have none yet: a GPU alone has no network, whatever the row
/// says.
void add_single_gpu(SurveyResults& results, const std::vector<AnyRow>& rows) {
  std::map<std::string, double> found;
  for (const AnyRow& any : rows) {
    if (is_single_gpu(any)) found[any.row.model] = any.row.seconds;
  }
  results.single_gpu.merge(found);
}

}  // namespace

std::vector<SurveyResults> read_surveys(const std::string& file, const std::string& baselines) {
  const std::vector<AnyRow> rows = rows_of(file);
  std::vector<SurveyResults> networks;
  for (const AnyRow& any : rows) {
    if (std::ranges::find(kSurveyMethods, any.row.method) == kSurveyMethods.end()) continue;
    auto of = std::ranges::find(networks, any.network, &SurveyResults::network);
    if (of == networks.end()) of = networks.insert(networks.end(), SurveyResults{any.network, {}, {}});
    of->rows.push_back(any.row);
  }
  if (networks.empty()) throw Error(ErrorCode::kBadInput, file + ": has no row of the seven methods");
  const std::vector<AnyRow> others = baselines.empty() ? std::vector<AnyRow>{} : rows_of(baselines);
  for (SurveyResults& results : networks) {
    add_single_gpu(results, rows);
    add_single_gpu(results, others);
    for (const std::string_view name : kSurveyModels) {
      if (results.single_gpu.contains(std::string(name))) continue;
      throw Error(ErrorCode::kBadInput, file + ": has no single-GPU row (SGD-1GPU) of " + std::string(name));
    }
  }
  return networks;
}

SurveyResults read_survey(const std::string& file) {
  std::vector<SurveyResults> networks = read_surveys(file);
  if (networks.size() == 1) return std::move(networks.front());
  throw Error(ErrorCode::kBadInput, file + ": has rows of " + std::to_string(networks.size()) + " networks");
}

SurveyModel::SurveyModel(const SurveyResults& results)
    : results_(results), point_to_point_latency_(latency_of(results.network)) {
  for (const std::string_view model : kSurveyModels) {
    const Profile shipped = *shipped_profile(profile_name(model));
    const double compute = (shipped.forward() + shipped.backward() + shipped.update()).count();
    profiles_.emplace(model, scaled(shipped, 1, results.single_gpu.at(std::string(model)) / compute));
  }
}

/// The optimizer's time is part of the measured iteration: it is taken out of the forward and backward
/// passes. Where each layer waits for its own gradients, every one that has some pays for that.
Profile SurveyModel::profile(std::string_view model, const Constants& constants, Barrier barrier) const {
  Profile profile = profiles_.find(model)->second;
  const double compute = (profile.forward() + profile.backward()).count();
  const double bytes = static_cast<double>(profile.gradient_bytes().count);
  const double updates = std::min(0.5 * compute, constants.update_per_byte * bytes);
  const double rest = 1 - updates / compute;
  for (Layer& layer : profile.layers) {
    layer.forward *= rest;
    layer.backward *= rest;
    double own = 0;
    for (const Tensor& tensor : layer.tensors) own += static_cast<double>(tensor.bytes.count);
    layer.update = Seconds{updates * own / bytes};
    if (barrier == Barrier::kPerLayer && own > 0) layer.update += Seconds{constants.layer_barrier};
  }
  return profile;
}

std::optional<double> SurveyModel::seconds_per_byte(std::string_view model, std::string_view architecture,
                                                    int gpus) const {
  const auto bulk = results_.seconds(model, "BSP-" + std::string(architecture), gpus);
  const double exposed = bulk.value_or(0) - results_.single_gpu.at(std::string(model));
  if (!(exposed > 0)) return {};
  return exposed / static_cast<double>(profiles_.find(model)->second.gradient_bytes().count);
}

std::optional<RoadOption> SurveyModel::road(std::string_view model, std::string_view architecture, int gpus,
                                            const Constants& constants) const {
  const auto per_byte = seconds_per_byte(model, architecture, gpus);
  if (!per_byte) return {};
  const bool servers = architecture == "PS";
  const double start = point_to_point_latency_ + (servers ? 0 : constants.negotiation * gpus);
  RoadCost cost;
  cost.both.alone = cost.both.occupancy = Curve{Seconds{start}, SecondsPerByte{*per_byte}};
  cost.reduce.alone = cost.reduce.occupancy = cost.distribute.alone = cost.distribute.occupancy =
      Curve{Seconds{start / 2}, SecondsPerByte{*per_byte / 2}};
  cost.may_part = !servers;
  return RoadOption{servers ? Road{ParameterServer{gpus}} : Road{AllReduce{}}, std::move(cost), {}};
}

double SurveyModel::time_of(std::string_view model, const Plan& plan, const RoadCost& cost,
                            const Constants& constants) const {
  const Workload work(profile(model, constants, plan.barrier), {1, constants.contention});
  return simulate(work, plan, cost).iteration.count();
}

std::optional<double> SurveyModel::predict(std::string_view model, std::string_view method, int gpus,
                                           const Constants& constants) const {
  if (method.starts_with("BSP")) return results_.seconds(model, method, gpus);
  const auto option = road(model, architecture_of_method(method), gpus, constants);
  if (!option) return {};
  const Planning job(profile(model, constants, Barrier::kFull), gpus, {*option}, {1, constants.contention});
  return time_of(model, plan_of(method, job, *option), option->cost, constants);
}

std::optional<double> SurveyModel::joint(std::string_view model, int gpus, const Constants& constants) const {
  std::vector<RoadOption> roads;
  for (const std::string_view architecture : {"A2A", "PS"}) {
    if (auto option = road(model, architecture, gpus, constants)) roads.push_back(*std::move(option));
  }
  if (roads.empty()) return {};
  return std::min(joint_charged(model, gpus, roads, constants, Barrier::kPerLayer),
                  joint_charged(model, gpus, roads, constants, Barrier::kFull));
}

/// The search knows of one price only: that of a barrier per layer, or none. What it starts from and what it
/// finds is charged for the barrier that it has, or for one for all if that is faster.
double SurveyModel::joint_charged(std::string_view model, int gpus, const std::vector<RoadOption>& roads,
                                  const Constants& constants, Barrier charged) const {
  const JobSlowdown slowdown{1, constants.contention};
  const Profile job_profile = profile(model, constants, charged);
  std::vector<RoadOption> options = roads;
  for (RoadOption& option : options) option.bound = lower_bound(Workload(job_profile, slowdown), option.cost);
  const Planning job(job_profile, gpus, std::move(options), slowdown);
  std::vector<PredictedPlan> starts;
  std::vector<Plan> plans;
  for (const RoadOption& option : job.roads) {
    plans.push_back(plan_of(option.cost.may_part ? "MG-WFBP" : "WFBP-PS", job, option));
    starts.push_back({plans.back(), simulate(job.work, plans.back(), option.cost)});
  }
  plans.push_back(tuner::joint_search(job, starts).best);
  double best = std::numeric_limits<double>::infinity();
  for (Plan& plan : plans) {
    const RoadCost& cost = std::ranges::find(job.roads, plan.road, &RoadOption::road)->cost;
    best = std::min(best, time_of(model, plan, cost, constants));
    plan.barrier = Barrier::kFull;
    best = std::min(best, time_of(model, plan, cost, constants));
  }
  return best;
}

namespace {

using Point = std::array<double, Constants::kCount>;

/// Nelder and Mead (1965) from `start` with the given first steps; parameters below zero count as zero.
Point minimise(const std::function<double(const Point&)>& loss, const Point& start, const Point& steps) {
  struct Vertex {
    Point at;
    double loss;
  };
  const auto clipped = [](Point p) {
    for (double& v : p) v = std::max(0.0, v);
    return p;
  };
  std::vector<Vertex> simplex{{start, loss(start)}};
  for (std::size_t i = 0; i < start.size(); ++i) {
    Point p = start;
    p[i] += steps[i];
    simplex.push_back({p, loss(p)});
  }
  const auto by_loss = [](const Vertex& a, const Vertex& b) { return a.loss < b.loss; };
  for (int round = 0; round < 400; ++round) {
    std::sort(simplex.begin(), simplex.end(), by_loss);
    Vertex& worst = simplex.back();
    Point centre{};
    for (std::size_t v = 0; v + 1 < simplex.size(); ++v) {
      for (std::size_t i = 0; i < centre.size(); ++i)
        centre[i] += simplex[v].at[i] / static_cast<double>(centre.size());
    }
    const auto along = [&](double factor) {
      Point p;
      for (std::size_t i = 0; i < p.size(); ++i) p[i] = centre[i] + factor * (worst.at[i] - centre[i]);
      p = clipped(p);
      return Vertex{p, loss(p)};
    };
    const Vertex reflected = along(-1);
    if (reflected.loss < simplex.front().loss) {
      const Vertex expanded = along(-2);
      worst = expanded.loss < reflected.loss ? expanded : reflected;
    } else if (reflected.loss < simplex[simplex.size() - 2].loss) {
      worst = reflected;
    } else if (const Vertex contracted = along(0.5); contracted.loss < worst.loss) {
      worst = contracted;
    } else {
      for (std::size_t v = 1; v < simplex.size(); ++v) {
        for (std::size_t i = 0; i < centre.size(); ++i) {
          simplex[v].at[i] = (simplex[v].at[i] + simplex.front().at[i]) / 2;
        }
        simplex[v].loss = loss(simplex[v].at);
      }
    }
  }
  return std::min_element(simplex.begin(), simplex.end(), by_loss)->at;
}

}  // namespace

FittedConstants fit_constants(const SurveyModel& model, const SurveyResults& results) {
  const auto residuals = [&](const Point& p) {
    std::vector<double> list;
    for (const SurveyRow& row : results.rows) {
      if (row.gpus > kFittedGpus || row.method.starts_with("BSP")) continue;
      const auto predicted = model.predict(row.model, row.method, row.gpus, Constants::from(p));
      if (predicted) list.push_back(std::log(*predicted / row.seconds));
    }
    return list;
  };
  const auto loss = [&](const Point& p) {
    double sum = 0;
    for (const double r : residuals(p)) sum += r * r;
    return sum;
  };
  FittedConstants fitted;
  const Point steps{0.5, 5e-6, 2e-11, 3e-4};
  fitted.best = Constants::from(minimise(loss, minimise(loss, {1, 5e-6, 1e-11, 3e-4}, steps), steps));
  const Point best = fitted.best.values();
  const std::vector<double> at_best = residuals(best);
  fitted.rows = static_cast<int>(at_best.size());
  const double variance = loss(best) / std::max(1, fitted.rows - static_cast<int>(best.size()));
  fitted.residual = std::sqrt(loss(best) / std::max(1, fitted.rows));
  for (std::size_t i = 0; i < best.size(); ++i) {
    Point moved = best;
    moved[i] += 0.05 * steps[i];
    const std::vector<double> there = residuals(moved);
    double slope = 0;
    for (std::size_t r = 0; r < there.size(); ++r)
      slope += std::pow((there[r] - at_best[r]) / (0.05 * steps[i]), 2);
    fitted.standard_error[i] = slope > 0 ? std::sqrt(variance / slope) : 0;
  }
  return fitted;
}

}  // namespace commtune::bench
