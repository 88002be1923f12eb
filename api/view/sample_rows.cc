#include "api/view/sample_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "perfmodel/base/error.h"
#include "perfmodel/base/json_reader.h"
#include "perfmodel/base/overloaded.h"

namespace commtune::api {
namespace {

using probes::Subject;

constexpr const char* kNothingMoves = "nothing_moves";
constexpr const char* kWire = "wire";
constexpr const char* kNccl = "nccl";
constexpr const char* kComputing = "computing";

constexpr std::array kSubjects = {
    Subject::kMessage, Subject::kExchange, Subject::kOperation,  Subject::kSum,    Subject::kCopy,
    Subject::kStep,    Subject::kJitter,   Subject::kHeadOfLine, Subject::kPlan,   Subject::kCast,
    Subject::kCastSum, Subject::kTraffic,  Subject::kLaunch,     Subject::kUpload, Subject::kDownload};

std::optional<Subject> subject_of(const std::string& name) {
  for (const Subject subject : kSubjects)
    if (probes::to_string(subject) == name) return subject;
  return {};
}

int server_count(const Road& road) {
  return match(
      road, [](const AllReduce&) { return 0; },
      [](const ParameterServer& servers) { return servers.servers; });
}

std::optional<int> rank_or_nothing(int rank) { return rank < 0 ? std::nullopt : std::optional(rank); }

}  // namespace

NewSample to_row(const probes::ProbeSample& sample) {
  const probes::Quantity& quantity = sample.quantity;
  NewSample row;
  row.kind = probes::to_string(quantity.subject);
  const bool of_operation = probes::of_operation(quantity.subject);
  if (of_operation) row.operation = quantity.operation;
  if (of_operation || quantity.subject == Subject::kPlan) {
    row.road = quantity.road;
    row.servers = server_count(quantity.road);
  }
  row.workers = quantity.workers;
  row.source_rank = rank_or_nothing(quantity.source);
  row.destination_rank = rank_or_nothing(quantity.destination);
  // The store counts messages from one on; "none" is told apart in the detail.
  row.in_flight = std::max(1, quantity.in_flight);
  if (quantity.in_flight == 0) row.detail = {{kNothingMoves, true}};
  if (quantity.wire != WireFormat::kAsIs) row.detail = {{kWire, to_string(quantity.wire)}};
  if (!quantity.nccl.is_own_choice()) row.detail = {{kNccl, to_string(quantity.nccl)}};
  if (quantity.computing) row.detail = {{kComputing, true}};
  if (quantity.subject == Subject::kPlan) {
    row.detail = probes::to_json(sample.costs);
  }
  row.bytes = sample.sample.size;
  row.median = sample.sample.time;
  row.half_width = sample.sample.half_width;
  row.repetitions = sample.sample.repetitions;
  row.raw_seconds = sample.raw_seconds;
  return row;
}

NcclTuning nccl_tuning_of(const SampleRow& row) {
  if (!row.detail.is_object() || !row.detail.contains(kNccl)) return {};
  const auto text = row.detail.at(kNccl).get<std::string>();
  const auto tuning = nccl_tuning_named(text);
  if (!tuning) {
    throw Error(ErrorCode::kStorage,
                fmt::format("sample {}: nccl \"{}\" is not one that this version knows", row.id, text));
  }
  return *tuning;
}

probes::ProbeSample from_row(const SampleRow& row) {
  const auto subject = subject_of(row.kind);
  if (!subject)
    throw Error(
        ErrorCode::kStorage,
        fmt::format("sample {}: kind \"{}\" is not one that this version measures", row.id, row.kind));
  probes::ProbeSample sample;
  sample.quantity.subject = *subject;
  if (row.road) sample.quantity.road = *row.road;
  if (row.operation) sample.quantity.operation = *row.operation;
  sample.quantity.workers = row.workers;
  sample.quantity.source = row.source_rank.value_or(-1);
  sample.quantity.destination = row.destination_rank.value_or(-1);
  const bool nothing_moves = row.detail.is_object() && row.detail.value(kNothingMoves, false);
  sample.quantity.in_flight = nothing_moves ? 0 : row.in_flight;
  if (row.detail.is_object() && row.detail.contains(kWire))
    sample.quantity.wire = wire_format_named(row.detail.at(kWire).get<std::string>());
  sample.quantity.nccl = nccl_tuning_of(row);
  sample.quantity.computing = row.detail.is_object() && row.detail.value(kComputing, false);
  if (*subject == Subject::kPlan) {
    sample.costs = probes::plan_costs_from_json(JsonPlace(row.detail));
  }
  sample.sample = Sample{row.bytes, row.median, row.half_width, row.repetitions};
  sample.raw_seconds = row.raw_seconds;
  return sample;
}

}  // namespace commtune::api
