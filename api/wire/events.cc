#include "api/wire/events.h"

#include "api/error_status.h"
#include "perfmodel/base/json_reader.h"

namespace commtune::api {
namespace {

using nlohmann::json;

constexpr std::string_view kReportFormat = "commtune/report/1";
constexpr std::string_view kLead = R"({"report":)";

json body(const Started& started) {
  return {{"report", "started"},
          {"format", kReportFormat},
          {"version", started.version},
          {"hosts", started.hosts}};
}

json body(const Progressed& progress) {
  json out{{"report", "progress"}, {"what", progress.what}, {"fraction", progress.fraction}};
  if (progress.left) out["left_seconds"] = progress.left->count();
  return out;
}

json body(const Found& found) { return {{"report", "found"}, {"kind", found.kind}, {"value", found.value}}; }

json body(const Finished& finished) { return {{"report", "finished"}, {"result", finished.result}}; }

json body(const Failed& failed) {
  return {{"report", "failed"}, {"code", error_status(failed.code).name}, {"message", failed.message}};
}

Started read_started(const JsonPlace& place) {
  place.expect_format(kReportFormat);
  Started started{place["version"].text(), {}};
  const JsonPlace hosts = place["hosts"];
  const std::size_t count = hosts.size(1, 1U << 20U);
  for (std::size_t i = 0; i < count; ++i) started.hosts.push_back(hosts[i].name());
  return started;
}

Progressed read_progress(const JsonPlace& place) {
  Progressed progress{place["what"].text(), place["fraction"].number(0, 1), {}};
  if (const auto left = place.find("left_seconds")) progress.left = Seconds{left->number(0, 1e9)};
  return progress;
}

}  // namespace

std::string to_line(const LaunchReport& report) {
  // "report" leads, so that a line can be told from a library's chatter before it is parsed.
  const json object = std::visit([](const auto& one) { return body(one); }, report);
  nlohmann::ordered_json ordered;
  ordered["report"] = object["report"];
  for (const auto& [key, value] : object.items())
    if (key != "report") ordered[key] = value;
  return ordered.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::optional<LaunchReport> report_from_line(std::string_view line) {
  if (!line.starts_with(kLead)) return {};
  const json document = parse_json(line, "report of rank 0");
  const JsonPlace place(document);
  const std::string kind = place["report"].name();
  if (kind == "started") return read_started(place);
  if (kind == "progress") return read_progress(place);
  if (kind == "found") return Found{place["kind"].name(), document.value("value", json())};
  if (kind == "finished") return Finished{document.value("result", json())};
  if (kind == "failed") return Failed{error_code_of(place["code"].name()), place["message"].text()};
  place["report"].fail("a kind of report that this version knows");
}

}  // namespace commtune::api
