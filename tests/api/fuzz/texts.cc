// Readers that keep nothing.

#include <nlohmann/json.hpp>

#include "api/import/profile_from_trace.h"
#include "api/import/trace_reader.h"
#include "api/launch/hosts.h"
#include "api/question/case.h"
#include "api/question/question.h"
#include "api/rest/http/options.h"
#include "api/rest/http/request_head.h"
#include "api/rest/http/router.h"
#include "api/wire/events.h"
#include "api/wire/order.h"
#include "perfmodel/base/json_reader.h"
#include "tests/api/fuzz/targets.h"
#include "tests/fuzz/require.h"
#include "tests/perfmodel/synthetic_profile.h"

namespace commtune::fuzz {
namespace {

using namespace api;

void require_hosts(const HostList& list) {
  require(!list.hosts.empty(), "a list has a host");
  for (const Host& host : list.hosts) require(!host.name.empty() && host.slots >= 0, "a host has a name");
  require(known_ranks(list) >= 0, "slots add up");
}

Cluster two_hosts() {
  Cluster cluster;
  cluster.name = "lab";
  cluster.hosts = {{"n1", 2}, {"n2", 2}};
  return cluster;
}

rest::Router some_routes() {
  rest::Router router;
  router.add({"GET", "/v1/plans", rest::Scope::kRead, {}});
  router.add({"GET", "/v1/plans/{id}/exports/{target}", rest::Scope::kRead, {}});
  return router;
}

}  // namespace

void head(std::string_view text) {
  const auto head = refused_or([&] { return rest::read_request_head(text); });
  if (!head) return;
  const std::string_view whole = text;
  require(whole.ends_with("\r\n\r\n") && whole.find("\r\n\r\n") + 4 == whole.size(),
          "a head ends with the first empty line");
  require(rest::may_begin_head(whole, '\0'), "what is taken was not refused before it was whole");
  require(!head->coded || head->content_length == 0, "one thing says where the body ends");
  for (const auto& [name, value] : head->fields) {
    require(!name.empty() && name.find_first_of(std::string_view("\r\n\0 \t:", 6)) == std::string::npos,
            "a name is a word");
    require(value.find_first_of(std::string_view("\r\n\0", 3)) == std::string::npos, "a value is a line");
  }
}

void hosts(std::string_view text) {
  if (const auto list = refused_or([&] { return parse_hostfile(text, "hosts.txt"); })) require_hosts(*list);
  if (const auto list = refused_or([&] { return parse_host_list(text); })) require_hosts(*list);
  if (const auto names = refused_or([&] { return expand_ranges(text); }))
    require(names->size() <= 65'536, "a pattern names no more hosts than that");
  rest::ServeOptions options;
  refused_or([&] {
    rest::set_listen_address(options, std::string(text));
    return true;
  });
  require(options.port >= 0 && options.port <= 65'535, "a port is one");
}

void question(std::string_view text) {
  static const Cluster kCluster = two_hosts();
  static const Profile kProfile = synthetic_profile(2, Bytes{64}, Seconds{1}, Seconds{1});
  const auto asked = refused_or([&] { return question_from_json(parse_json(text, "request body")); });
  if (!asked) return;
  const Profile& profile = asked->profile ? *asked->profile : kProfile;
  const auto made = refused_or([&] { return make_case(*asked, asked->allocation, profile, kCluster); },
                               ErrorCode::kNotFound);
  if (!made) return;
  const auto record = record_of(*made, asked->overrides, asked->cluster.name, 1);
  const Case again = case_from_record(nlohmann::json::parse(record.dump()), made->profile, kCluster);
  require(record_of(again, asked->overrides, asked->cluster.name, 1) == record, "a case can be made again");
}

void target(std::string_view text) {
  static const rest::Router kRouter = some_routes();
  const std::size_t mark = std::min(text.find('?'), text.size());
  const std::string_view path = text.substr(0, mark);
  if (const auto match = kRouter.find("GET", path))
    for (const std::string& argument : match->arguments)
      require(argument.find('\0') == std::string::npos, "an argument has no NUL");
  kRouter.methods_of(path);
  if (mark == text.size()) return;
  if (const auto query = rest::parse_query(text.substr(mark + 1)))
    for (const auto& [name, value] : *query)
      require((name + value).find('\0') == std::string::npos, "a parameter has no NUL");
}

void trace(std::string_view text) {
  const auto read = refused_or([&] { return read_trace(text, "trace.json"); });
  if (!read) return;
  const auto profile = refused_or([&] { return profile_from_trace(*read, {}, "trace.json"); });
  if (profile)
    require(digest(profile_from_json(to_json(*profile))) == digest(*profile), "a profile can be read again");
}

void wire(std::string_view text) {
  if (const auto order = refused_or([&] { return order_from_json(parse_json(text, "order")); })) {
    const std::string written = to_json(*order).dump();
    const auto again = refused_or([&] { return order_from_json(parse_json(written, "again")); });
    require(again && to_json(*again).dump() == written, "what was written is what was read");
  }
  const auto report = refused_or([&] { return report_from_line(text); });
  if (!report || !*report) return;
  const std::string line = to_line(**report);
  const auto again = refused_or([&] { return report_from_line(line); });
  require(again && *again && to_line(**again) == line, "a report is what was reported");
}

}  // namespace commtune::fuzz
