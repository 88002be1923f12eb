#include "executor/session/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "perfmodel/base/error.h"
#include "perfmodel/base/json_reader.h"

namespace commtune {

// NOLINTBEGIN(bugprone-macro-parentheses): the library's macro
// With defaults: reports that were stored by earlier versions lack what later ones added.
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(RankReport, rank, host, worker, iteration_seconds,
                                                waited_seconds, cpu_seconds, copying_seconds, delayed_seconds,
                                                wall_seconds, peak_bytes, gradient_bytes, buffer_bytes,
                                                clock_offset_seconds, trace)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(MessageReport, queued_seconds, started_seconds, reduced_seconds,
                                   distributed_seconds, used_seconds)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(CheckReport, iterations, tensors, spot_elements)
// NOLINTEND(bugprone-macro-parentheses)

namespace {

constexpr const char* kFormat = "commtune/run/1";

/// Reports from before there were such keys are written as they were.
nlohmann::json ranks_to_json(const std::vector<RankReport>& ranks) {
  nlohmann::json out = ranks;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (ranks[i].sent_bytes > 0) out[i]["sent_bytes"] = ranks[i].sent_bytes;
    if (ranks[i].overflows > 0) out[i]["overflows"] = ranks[i].overflows;
  }
  return out;
}

std::vector<RankReport> ranks_from_json(const nlohmann::json& json) {
  auto ranks = json.get<std::vector<RankReport>>();
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    ranks[i].sent_bytes = json[i].value("sent_bytes", std::uint64_t{0});
    ranks[i].overflows = json[i].value("overflows", std::uint64_t{0});
  }
  return ranks;
}

}  // namespace

std::uint64_t overflows(const RunReport& report) {
  std::optional<std::uint64_t> fewest;
  for (const RankReport& rank : report.ranks) {
    if (rank.worker) fewest = std::min(rank.overflows, fewest.value_or(rank.overflows));
  }
  return fewest.value_or(0);
}

nlohmann::json to_json(const RunReport& report) {
  nlohmann::json out = {{"format", kFormat},
                        {"method", report.method},
                        {"model", report.model},
                        {"plan_digest", report.plan_digest},
                        {"profile_digest", report.profile_digest},
                        {"transport", report.transport},
                        {"workers", report.workers},
                        {"chunk_bytes", report.chunk_bytes},
                        {"iteration_seconds", report.iteration_seconds},
                        {"median_seconds", report.median_seconds},
                        {"p95_seconds", report.p95_seconds},
                        {"half_width_seconds", report.half_width_seconds},
                        {"waited_seconds", report.waited_seconds},
                        {"check", report.check},
                        {"messages", report.messages},
                        {"ranks", ranks_to_json(report.ranks)}};
  if (!report.wire.empty()) out["wire"] = report.wire;
  return out;
}

RunReport run_report_from_json(const nlohmann::json& json) {
  try {
    JsonPlace(json).expect_format(kFormat);
    RunReport report;
    json.at("method").get_to(report.method);
    json.at("model").get_to(report.model);
    json.at("plan_digest").get_to(report.plan_digest);
    json.at("profile_digest").get_to(report.profile_digest);
    json.at("transport").get_to(report.transport);
    json.at("workers").get_to(report.workers);
    json.at("chunk_bytes").get_to(report.chunk_bytes);
    json.at("iteration_seconds").get_to(report.iteration_seconds);
    json.at("median_seconds").get_to(report.median_seconds);
    json.at("p95_seconds").get_to(report.p95_seconds);
    json.at("half_width_seconds").get_to(report.half_width_seconds);
    json.at("waited_seconds").get_to(report.waited_seconds);
    json.at("check").get_to(report.check);
    json.at("messages").get_to(report.messages);
    report.ranks = ranks_from_json(json.at("ranks"));
    report.wire = json.value("wire", "");
    return report;
  } catch (const nlohmann::json::exception& error) {
    throw Error(ErrorCode::kBadInput, fmt::format("run report: {}", error.what()));
  }
}

std::string rank_part_to_text(const RunReport& report) {
  return nlohmann::json{{"report", to_json(report)}}.dump();
}

RunReport rank_part_from_text(std::string_view text, std::string_view rank) {
  const nlohmann::json document = parse_json(text, rank);
  try {
    RunReport part = run_report_from_json(document.is_object() ? document.value("report", nlohmann::json())
                                                               : nlohmann::json());
    if (part.ranks.size() != 1)
      throw Error(ErrorCode::kBadInput, fmt::format("ranks: expected its own, got {}", part.ranks.size()));
    return part;
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}", rank, error.what()));
  }
}

}  // namespace commtune
