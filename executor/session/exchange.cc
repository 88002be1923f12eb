#include "executor/session/exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include "executor/base/value_bytes.h"
#include "perfmodel/base/error.h"
#include "perfmodel/base/json_reader.h"
#include "perfmodel/base/units.h"

namespace commtune {
namespace {

constexpr Tag kTextTag = make_tag(TagSpace::kControl, 1);
constexpr Tag kClockTag = make_tag(TagSpace::kControl, 2);
constexpr Tag kMoreTag = make_tag(TagSpace::kControl, 3);

/// A text travels in parts of so many bytes, the first unasked, the others when the receiver has had the one
/// before: it never holds much more than has come.
constexpr std::uint64_t kTextPart = (512_KiB).count;
constexpr std::uint64_t kLongestText = (1024_MiB).count;

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

std::size_t part_at(std::uint64_t offset, std::uint64_t length) {
  return std::min(kTextPart, length - offset);
}

/// The length first: receives need to know how much room to have.
Task send_text(Communicator& communicator, int to, const std::string& text) {
  std::uint64_t length = text.size();
  Group sends;
  communicator.send(to, kTextTag, value_bytes(length), sends);
  for (std::uint64_t offset = 0; offset < length; offset += kTextPart) {
    std::byte more{};
    if (offset > 0) co_await communicator.receive(to, kMoreTag, value_bytes(more));
    communicator.send(to, kTextTag, bytes_of(text).subspan(offset, part_at(offset, length)), sends);
  }
  co_await sends.empty();
}

void check_length(const Communicator& communicator, int from, std::uint64_t length) {
  if (length <= kLongestText) return;
  throw Error(ErrorCode::kConflict, fmt::format("{} announced a text of {} B: must be at most {} B",
                                                describe(communicator.peers(), from), length, kLongestText));
}

/// text  empty
Task receive_text(Communicator& communicator, int from, std::string& text) {
  std::uint64_t length = 0;
  co_await communicator.receive(from, kTextTag, value_bytes(length));
  check_length(communicator, from, length);
  for (std::uint64_t offset = 0; offset < length; offset += kTextPart) {
    std::byte more{};
    if (offset > 0) co_await communicator.send(from, kMoreTag, value_bytes(more));
    text.resize(offset + part_at(offset, length));
    co_await communicator.receive(from, kTextTag, std::as_writable_bytes(std::span(text)).subspan(offset));
  }
}

/// Several tasks at once, as one.
Task together(std::vector<Task> tasks) {
  for (Task& task : tasks) task.start();
  for (Task& task : tasks) co_await task.ended();
}

Task ask_clocks(Communicator& communicator) {
  // The peers ask, one after the other, so that no trip waits for another's.
  for (int peer = 1; peer < communicator.size(); ++peer) {
    for (;;) {
      std::int64_t more = 0;
      co_await communicator.receive(peer, kClockTag, value_bytes(more));
      if (more == 0) break;
      std::int64_t now = Clock::now().time_since_epoch().count();
      co_await communicator.send(peer, kClockTag, value_bytes(now));
    }
  }
}

Task measure_clock(Communicator& communicator, ClockSurvey& survey) {
  constexpr int kTrips = 20;
  std::int64_t fastest = INT64_MAX;
  for (int trip = 0; trip < kTrips; ++trip) {
    std::int64_t more = 1;
    std::int64_t theirs = 0;
    const std::int64_t before = Clock::now().time_since_epoch().count();
    co_await communicator.send(0, kClockTag, value_bytes(more));
    co_await communicator.receive(0, kClockTag, value_bytes(theirs));
    const std::int64_t after = Clock::now().time_since_epoch().count();
    if (after - before < fastest) {
      fastest = after - before;
      survey.offset_seconds = 1e-9 * static_cast<double>(std::midpoint(before, after) - theirs);
    }
  }
  std::int64_t done = 0;
  co_await communicator.send(0, kClockTag, value_bytes(done));
}

/// The values of a rank's facts. Another program on it may send anything.
std::vector<std::string> values_from(const std::string& text, std::size_t count, const std::string& rank) {
  const std::string what = rank + ": what it was started with";
  const nlohmann::json document = parse_json(text, what);
  std::vector<std::string> values;
  try {
    const JsonPlace facts(document);
    facts.size(count, count);
    for (std::size_t i = 0; i < count; ++i) values.push_back(facts[i].text());
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}", what, error.what()));
  }
  return values;
}

}  // namespace

std::vector<std::string> all_gather(Communicator& communicator, const std::string& own, Deadline until) {
  std::vector<std::string> texts(static_cast<std::size_t>(communicator.size()));
  std::vector<Task> tasks;
  for (int peer = 0; peer < communicator.size(); ++peer) {
    std::string& text = texts[static_cast<std::size_t>(peer)];
    if (peer == communicator.rank()) {
      text = own;
      continue;
    }
    tasks.push_back(receive_text(communicator, peer, text));
    tasks.push_back(send_text(communicator, peer, own));
  }
  communicator.run(together(std::move(tasks)), until);
  return texts;
}

std::vector<std::string> gather(Communicator& communicator, const std::string& own, Deadline until) {
  if (communicator.rank() != 0) {
    communicator.run(send_text(communicator, 0, own), until);
    return {};
  }
  std::vector<std::string> texts(static_cast<std::size_t>(communicator.size()));
  texts[0] = own;
  std::vector<Task> tasks;
  for (int peer = 1; peer < communicator.size(); ++peer) {
    tasks.push_back(receive_text(communicator, peer, texts[static_cast<std::size_t>(peer)]));
  }
  communicator.run(together(std::move(tasks)), until);
  return texts;
}

std::string broadcast(Communicator& communicator, const std::string& own, Deadline until) {
  std::string text = own;
  std::vector<Task> tasks;
  if (communicator.rank() != 0) {
    text.clear();
    tasks.push_back(receive_text(communicator, 0, text));
  } else {
    for (int peer = 1; peer < communicator.size(); ++peer)
      tasks.push_back(send_text(communicator, peer, text));
  }
  communicator.run(together(std::move(tasks)), until);
  return text;
}

void barrier(Communicator& communicator, Deadline until) { all_gather(communicator, {}, until); }

ClockSurvey survey_clocks(Communicator& communicator, Deadline until) {
  ClockSurvey survey;
  if (communicator.rank() == 0) {
    communicator.run(ask_clocks(communicator), until);
  } else {
    communicator.run(measure_clock(communicator, survey), until);
  }
  const std::int64_t now = Clock::now().time_since_epoch().count();
  const auto all = all_gather(communicator, std::to_string(now), until);
  survey.zero = Clock::time_point(Clock::duration(std::stoll(all.front())));
  return survey;
}

std::optional<std::string> disagreement(const Peers& peers, const std::string& name,
                                        const std::vector<std::string>& values) {
  std::map<std::string, std::vector<int>> who;
  for (int rank = 0; rank < peers.size(); ++rank) {
    const std::string& value = values[static_cast<std::size_t>(rank)];
    if (!value.empty()) who[value].push_back(rank);
  }
  if (who.size() <= 1) return std::nullopt;
  std::string text;
  for (const auto& [value, ranks] : who) {
    text += fmt::format("{}{} has {}", text.empty() ? "" : ", ", describe(peers, ranks.front()), value);
    if (ranks.size() > 1) text += fmt::format(" (and {} more)", ranks.size() - 1);
  }
  return fmt::format("ranks disagree about the {}: {}", name, text);
}

void agree(Communicator& communicator, const std::vector<Fact>& facts, Deadline until) {
  nlohmann::json own = nlohmann::json::array();
  for (const Fact& fact : facts) own.push_back(fact.value);
  const std::vector<std::string> all =
      all_gather(communicator, own.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace), until);
  std::vector<std::vector<std::string>> values;
  values.reserve(all.size());
  for (const std::string& text : all) {
    const auto rank = static_cast<int>(values.size());
    values.push_back(values_from(text, facts.size(), describe(communicator.peers(), rank)));
  }
  for (std::size_t i = 0; i < facts.size(); ++i) {
    std::vector<std::string> each;
    each.reserve(values.size());
    for (const std::vector<std::string>& rank : values) each.push_back(rank[i].empty() ? "nothing" : rank[i]);
    if (const auto text = disagreement(communicator.peers(), facts[i].name, each))
      throw Error(ErrorCode::kConflict, *text);
  }
}

}  // namespace commtune
