#include "tests/cluster/control.h"

#include <charconv>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "perfmodel/base/error.h"

namespace commtune::cluster {

namespace {

using nlohmann::json;
using std::chrono::nanoseconds;

std::int64_t in_nanoseconds(Time time) { return std::chrono::duration_cast<nanoseconds>(time).count(); }

std::vector<std::string_view> words(std::string_view line) {
  std::vector<std::string_view> result;
  while (!line.empty()) {
    const std::size_t start = line.find_first_not_of(" \t\r\n");
    if (start == std::string_view::npos) break;
    const std::size_t end = std::min(line.find_first_of(" \t\r\n", start), line.size());
    result.push_back(line.substr(start, end - start));
    line.remove_prefix(end);
  }
  return result;
}

json port_status(const Fabric& fabric, std::size_t port) {
  const PortSettings& settings = fabric.settings(port);
  const PortCounters& counters = fabric.counters(port);
  return {{"host", port + 1},
          {"group", fabric.group(port)},
          {"up_bytes_per_second", settings.up_bytes_per_second},
          {"down_bytes_per_second", settings.down_bytes_per_second},
          {"delay_ns", in_nanoseconds(settings.delay)},
          {"buffer_bytes", settings.buffer_bytes},
          {"cut", settings.cut},
          {"sent_frames", counters.sent_frames},
          {"sent_bytes", counters.sent_bytes},
          {"received_frames", counters.received_frames},
          {"received_bytes", counters.received_bytes},
          {"dropped_packets", counters.dropped_packets},
          {"cut_frames", counters.cut_frames},
          {"strange_frames", counters.strange_frames}};
}

json status(const Fabric& fabric) {
  json ports = json::array();
  for (std::size_t port = 0; port < fabric.ports(); ++port) ports.push_back(port_status(fabric, port));
  json groups = json::array();
  for (std::size_t group = 0; group < fabric.groups(); ++group) {
    const TrunkSettings& trunk = fabric.trunk(group);
    groups.push_back({{"trunk_bytes_per_second", trunk.bytes_per_second},
                      {"trunk_delay_ns", in_nanoseconds(trunk.delay)},
                      {"trunk_buffer_bytes", trunk.buffer_bytes}});
  }
  const Lateness& late = fabric.lateness();
  const auto frames = static_cast<double>(std::max<std::uint64_t>(late.frames, 1));
  return {{"ports", ports},
          {"groups", groups},
          {"lateness",
           {{"frames", late.frames},
            {"mean_ns", static_cast<double>(in_nanoseconds(late.sum)) / frames},
            {"worst_ns", in_nanoseconds(late.worst)},
            {"over_50us_ratio", static_cast<double>(late.over_50us) / frames}}}};
}

std::size_t find_host(std::string_view text, const Fabric& fabric) {
  const auto number = static_cast<std::size_t>(parse_count("host", text, 1));
  if (number > fabric.ports()) {
    throw Error(ErrorCode::kBadInput,
                "host = " + std::string(text) + ": there are " + std::to_string(fabric.ports()) + " hosts");
  }
  return number - 1;
}

void set_port(Fabric& fabric, std::size_t port, std::span<const std::string_view> pairs) {
  PortSettings settings = fabric.settings(port);
  for (const std::string_view pair : pairs) {
    const std::size_t equals = pair.find('=');
    if (equals == std::string_view::npos) {
      throw Error(ErrorCode::kBadInput, "'" + std::string(pair) + "': expected KEY=NUMBER");
    }
    set_port_key(settings, pair.substr(0, equals), pair.substr(equals + 1));
  }
  fabric.set(port, settings);
}

void set_cut(Fabric& fabric, std::size_t port, bool cut) {
  PortSettings settings = fabric.settings(port);
  settings.cut = cut;
  fabric.set(port, settings);
}

ControlReply carry_out(std::span<const std::string_view> request, Fabric& fabric) {
  const std::string_view verb = request.empty() ? std::string_view() : request[0];
  if (verb == "status" && request.size() == 1) return {status(fabric).dump()};
  if (verb == "quit" && request.size() == 1) return {json{{"ok", true}}.dump(), true};
  if (verb == "set" && request.size() >= 3) {
    const std::size_t port = find_host(request[1], fabric);
    set_port(fabric, port, request.subspan(2));
    return {port_status(fabric, port).dump()};
  }
  if ((verb == "cut" || verb == "restore") && request.size() == 2) {
    const std::size_t port = find_host(request[1], fabric);
    set_cut(fabric, port, verb == "cut");
    return {port_status(fabric, port).dump()};
  }
  throw Error(ErrorCode::kBadInput,
              "expected: status | set HOST KEY=NUMBER ... | cut HOST | restore HOST | quit");
}

}  // namespace

std::int64_t parse_count(std::string_view what, std::string_view text, std::int64_t least) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < least) {
    throw Error(ErrorCode::kBadInput, std::string(what) + " = '" + std::string(text) +
                                          "': must be a whole number of at least " + std::to_string(least));
  }
  return value;
}

void set_port_key(PortSettings& settings, std::string_view key, std::string_view value) {
  if (key == "up") {
    settings.up_bytes_per_second = parse_count(key, value, 1);
  } else if (key == "down") {
    settings.down_bytes_per_second = parse_count(key, value, 1);
  } else if (key == "delay") {
    settings.delay = nanoseconds(parse_count(key, value, 0));
  } else if (key == "buffer") {
    settings.buffer_bytes = parse_count(key, value, 0);
  } else {
    throw Error(ErrorCode::kBadInput, "'" + std::string(key) + "': must be up, down, delay or buffer");
  }
}

ControlReply handle_request(std::string_view request, Fabric& fabric) {
  try {
    return carry_out(words(request), fabric);
  } catch (const Error& error) {
    return {json{{"error", error.what()}}.dump()};
  }
}

}  // namespace commtune::cluster
