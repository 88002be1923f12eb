#include "probes/protocol/coordinator.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "perfmodel/base/error.h"
#include "perfmodel/base/json_reader.h"

namespace commtune::probes {

namespace {

constexpr Tag kHelloTag = make_tag(TagSpace::kControl, 103);  // see command.h
constexpr std::size_t kMostHelloBytes = 64 << 10;             // the facts of a host are some 2 KB

// A follower that hears nothing for so many time-outs gives rank 0 up: it may be fitting, or diagnosing.
constexpr double kFollowerPatience = 2;

// Between the sending of a command and the moment that it names: on top of the way there, for each rank that
// is told (a send and the waking of who gets it), and in any case. With less, some ranks begin late, and the
// lead grows by half; it shrinks by a hundredth a command. What is too long all ranks wait, every command.
constexpr Nanoseconds kLeadPerRank{15'000};
constexpr Nanoseconds kLeadAlways{150'000};
// Times that: 10 ms with four ranks. Commands that still come late then are late for another reason than the
// way.
constexpr double kMostLead = 50;

Deadline in(Seconds time) { return Clock::now() + std::chrono::duration_cast<Clock::duration>(time); }

std::string pack(const Hello& hello) {
  return nlohmann::json{{"facts", hello.facts}, {"conflict", hello.conflict}}.dump();
}

Hello unpack_hello(std::span<const std::byte> bytes) {
  const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const nlohmann::json json = parse_json(text, "a rank's greeting");
  const JsonPlace place(json);
  const JsonPlace conflict = place["conflict"];
  const JsonPlace facts = place["facts"];
  Hello hello{{}, conflict.text()};
  for (const auto& [key, value] : facts.object().items()) {
    const JsonPlace fact = facts[key];
    hello.facts[key] = fact.text();
  }
  return hello;
}

void set_text(Command& command, const std::string& text) {
  const std::size_t length = std::min(text.size(), command.text.size() - 1);
  std::copy_n(text.begin(), length, command.text.begin());
  command.text[length] = '\0';
}

/// Moments become those of this rank's clock; durations stay as they are.
void shift(FollowerReport& report, Nanoseconds ahead, bool ends_are_moments) {
  report.head.received -= ahead;
  report.head.answered -= ahead;
  if (report.head.started != Nanoseconds{0}) report.head.started -= ahead;
  if (ends_are_moments) {
    for (Nanoseconds& end : report.ends) end -= ahead;
  }
}

bool reports_moments(const Quantity& quantity) {
  switch (quantity.subject) {
    case Subject::kOperation:
    case Subject::kExchange:
    case Subject::kHeadOfLine:
    case Subject::kTraffic:
      return true;
    case Subject::kMessage:
      return quantity.in_flight > 1;
    case Subject::kSum:
    case Subject::kCopy:
    case Subject::kCast:
    case Subject::kCastSum:
    case Subject::kStep:
    case Subject::kJitter:
    case Subject::kPlan:
    case Subject::kLaunch:
    case Subject::kUpload:
    case Subject::kDownload:
      return false;
  }
  return false;
}

std::string list(const Peers& peers, const std::vector<int>& ranks) {
  constexpr std::size_t kNamed = 8;  // ranks in one line of text: as many as a person still reads
  std::string text;
  for (std::size_t i = 0; i < ranks.size() && i < kNamed; ++i) {
    text += (i == 0 ? "" : ", ") + describe(peers, ranks[i]);
  }
  if (ranks.size() > kNamed) text += " and " + std::to_string(ranks.size() - kNamed) + " more";
  return text;
}

}  // namespace

Coordinator::Coordinator(Communicator& communicator, Patience patience, Bytes chunk)
    : communicator_(communicator),
      follower_(communicator, chunk),
      patience_(patience),
      clocks_(communicator.size()),
      outgoing_(static_cast<std::size_t>(communicator.size())),
      incoming_(static_cast<std::size_t>(communicator.size())) {
  for (Incoming& incoming : incoming_) incoming.bytes.resize(kMostHelloBytes);
}

// --- receiving ------------------------------------------------------------------------------------------

Task Coordinator::receive_into(Incoming& incoming, int from, Tag tag) {
  const Completion completion = co_await communicator_.receive(from, tag, incoming.bytes);
  incoming.returned = now();
  incoming.length = completion.bytes;
  incoming.done = true;
}

void Coordinator::start_receiving(Tag tag) {
  receiving_.clear();
  for (int rank = 1; rank < communicator_.size(); ++rank) {
    Incoming& incoming = incoming_[static_cast<std::size_t>(rank)];
    incoming.done = false;
    receiving_.push_back(receive_into(incoming, rank, tag));
    receiving_.back().start();
  }
}

std::vector<int> Coordinator::missing() const {
  std::vector<int> ranks;
  for (int rank = 1; rank < communicator_.size(); ++rank) {
    if (!incoming_[static_cast<std::size_t>(rank)].done) ranks.push_back(rank);
  }
  return ranks;
}

bool Coordinator::all_received() const {
  return std::all_of(incoming_.begin() + 1, incoming_.end(),
                     [](const Incoming& incoming) { return incoming.done; });
}

void Coordinator::progress_until_received(Deadline until) {
  while (!all_received() && Clock::now() < until) communicator_.progress(until);
}

/// Who is silent: if it is everybody, the silence is more likely to be on this end.
Error Coordinator::silence(const std::string& what, Seconds waited) const {
  const std::vector<int> silent = missing();
  const Peers& peers = communicator_.peers();
  std::string text;
  if (silent.size() > 1 && static_cast<int>(silent.size()) == peers.size() - 1) {
    text = "no rank answers " + describe(peers, 0) + ", whose link may be down";
  } else {
    text = list(peers, silent) + (silent.size() == 1 ? " does" : " do") + " not answer";
  }
  return {ErrorCode::kTimeout, text + " (for " + format_time(waited) + ", while measuring " + what + ")"};
}

// --- commands -------------------------------------------------------------------------------------------

std::vector<Hello> Coordinator::greetings(const Hello& own) {
  std::vector<Hello> hellos{own};
  start_receiving(kHelloTag);
  progress_until_received(in(patience_.timeout));
  if (!all_received()) throw silence("nothing yet: this was the first message", patience_.timeout);
  for (std::size_t rank = 1; rank < incoming_.size(); ++rank) {
    hellos.push_back(unpack_hello(std::span(incoming_[rank].bytes).first(incoming_[rank].length)));
  }
  return hellos;
}

/// Sends each follower its command, performs this rank's own, and waits for all reports.
void Coordinator::exchange(const std::vector<Command>& commands, FollowerReport& own, Seconds limit,
                           const std::string& what) {
  outgoing_ = commands;
  start_receiving(kReportTag);
  for (int rank = 1; rank < communicator_.size(); ++rank) {
    const Command& command = outgoing_[static_cast<std::size_t>(rank)];
    communicator_.send(rank, kCommandTag, std::as_bytes(std::span(&command, 1)), sends_);
  }
  own = follower_.perform(outgoing_[0]);
  const Seconds waiting = own.head.failed != Failure::kNone ? patience_.grace : limit + patience_.grace;
  progress_until_received(in(waiting));
  if (!all_received()) throw silence(what, own.head.failed != Failure::kNone ? limit + waiting : waiting);
}

void Coordinator::compare_clocks(int rounds) {
  for (int i = 0; i < rounds; ++i) {
    perform(Command{}, Seconds{0}, "the clocks");
  }
}

/// How far ahead a moment must be so that all ranks know of it before.
Nanoseconds Coordinator::lead() const {
  const auto way = static_cast<double>(clocks_.slowest_round_trip().count()) / 2;
  const auto fixed = static_cast<double>((kLeadAlways + kLeadPerRank * communicator_.size()).count());
  return Nanoseconds{static_cast<std::int64_t>((way * 1.25 + fixed) * lead_factor_)};
}

std::vector<FollowerReport> Coordinator::perform(Command command, Seconds expected, const std::string& what) {
  command.sequence = ++sequence_;
  const Seconds limit = patience_.timeout + 5 * expected;
  command.limit = std::chrono::duration_cast<Nanoseconds>(limit);
  const Nanoseconds sent = now();
  const Nanoseconds start = sent + lead();
  std::vector<Command> commands(static_cast<std::size_t>(communicator_.size()), command);
  for (int rank = 0; rank < communicator_.size(); ++rank) {
    if (command.action == Action::kMeasure) {
      commands[static_cast<std::size_t>(rank)].start = start + clocks_.ahead(rank);
    }
  }
  FollowerReport own;
  exchange(commands, own, limit, what);

  std::vector<FollowerReport> reports{std::move(own)};
  bool late = false;
  for (int rank = 1; rank < communicator_.size(); ++rank) {
    const Incoming& incoming = incoming_[static_cast<std::size_t>(rank)];
    FollowerReport report = unpack_report(std::span(incoming.bytes).first(incoming.length));
    const Nanoseconds ahead = clocks_.ahead(rank);
    clocks_.add(rank, {sent, report.head.received, report.head.answered, incoming.returned});
    shift(report, ahead, reports_moments(command.quantity));
    late = late || (command.action == Action::kMeasure && report.head.received > start);
    reports.push_back(std::move(report));
  }
  lead_factor_ = late ? std::min(lead_factor_ * 1.5, kMostLead) : std::max(lead_factor_ * 0.99, 1.0);

  for (int rank = 0; rank < communicator_.size(); ++rank) {
    const FollowerReportHead& head = reports[static_cast<std::size_t>(rank)].head;
    if (head.failed == Failure::kNone) continue;
    const Peers& peers = communicator_.peers();
    if (head.failed == Failure::kUnavailable) {
      std::string why = what + ": ";
      why += rank == 0 ? follower_.why_unavailable() : describe(peers, rank) + " cannot carry it out";
      throw Error(ErrorCode::kUnavailable, why);
    }
    const std::string whom = head.waited_for < 0 ? "something" : describe(peers, head.waited_for);
    std::string text = describe(peers, rank) + " waited for " + whom + " for " + format_time(limit);
    text += ", while measuring " + what + "; both still answer rank 0";
    throw Error(ErrorCode::kTimeout, text);
  }
  return reports;
}

void Coordinator::stop(const std::string& reason) noexcept {
  try {
    Command command;
    command.action = Action::kStop;
    command.sequence = ++sequence_;
    set_text(command, reason);
    farewell_.assign(outgoing_.size(), command);
    for (int rank = 1; rank < communicator_.size(); ++rank) {
      const Command& one = farewell_[static_cast<std::size_t>(rank)];
      communicator_.send(rank, kCommandTag, std::as_bytes(std::span(&one, 1)), sends_);
    }
    const Deadline until = in(Seconds{1});
    while (sends_.pending() > 0 && Clock::now() < until) communicator_.progress(until);
  } catch (...) {
    // The others find out by themselves.
  }
}

// --- followers ------------------------------------------------------------------------------------------

namespace {

Task greet(Communicator& communicator, const std::string& hello) {
  co_await communicator.send(0, kHelloTag, std::as_bytes(std::span(hello)));
}

Task take_command(Communicator& communicator, Command& command) {
  co_await communicator.receive(0, kCommandTag, std::as_writable_bytes(std::span(&command, 1)));
}

Task answer(Communicator& communicator, const std::vector<std::byte>& report) {
  co_await communicator.send(0, kReportTag, report);
}

}  // namespace

void follow(Communicator& communicator, const Hello& own, Patience patience, Bytes chunk) {
  const Seconds longest = patience.timeout * kFollowerPatience;
  const std::string hello = pack(own);
  communicator.run(greet(communicator, hello), in(longest));
  Follower follower(communicator, chunk);
  bool failed = false;
  while (true) {
    Command command;
    communicator.run(take_command(communicator, command),
                     in(failed ? patience.grace * kFollowerPatience : longest));
    if (command.action == Action::kStop) {
      if (command.text[0] != '\0') throw Error(ErrorCode::kPeerLost, command.text.data());
      return;
    }
    FollowerReport report = follower.perform(command);
    failed = failed || report.head.failed == Failure::kGaveUp;
    report.head.answered = now();
    const std::vector<std::byte> bytes = pack(report);
    communicator.run(answer(communicator, bytes), in(longest));
  }
}

}  // namespace commtune::probes
