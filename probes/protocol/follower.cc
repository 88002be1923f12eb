#include "probes/protocol/follower.h"

#include <algorithm>
#include <atomic>
#include <span>

#include "executor/base/short_turns.h"
#include "executor/engine/link_share.h"
#include "executor/memory/host_memory.h"
#include "executor/transport/rank_gpu.h"
#include "perfmodel/base/error.h"
#include "perfmodel/base/overloaded.h"
#include "probes/analysis/links.h"
#include "probes/load/compute_load.h"
#include "probes/load/cuda/gpu_step.h"
#include "probes/load/road_operation.h"

namespace commtune::probes {

namespace {

/// For all ranks to come where a library of collectives makes them known to each other.
constexpr std::chrono::seconds kLibraryLimit{60};
/// Each command's tags begin kMostEnds after those of the one before, which may still be under way, and start
/// over at half of all numbers, so that the last one of a command is never beyond them.
constexpr std::uint32_t kTagRange = kTagNumbers / 2;
/// More than the ranks of a host find room for in its caches.
constexpr std::size_t kColdBytes = std::size_t{64} << 20;

Nanoseconds after(Nanoseconds start) { return now() - start; }

Deadline at(Nanoseconds time) { return Deadline(time); }

/// Both stages ran, so every rank holds the result.
bool ends_with_sum(Operation operation) {
  return operation == Operation::kAllReduce || operation == Operation::kPushPull;
}

/// Of a stream only its end counts: all of them would be many bytes on the way to rank 0.
std::vector<Nanoseconds> told(const Command& command, const std::vector<Nanoseconds>& ends) {
  if (command.quantity.in_flight == 1 || ends.empty()) return ends;
  return {*std::max_element(ends.begin(), ends.end())};
}

struct GaveUp {
  int waited_for = -1;
};

}  // namespace

Follower::Follower(Communicator& communicator, Bytes chunk)
    : communicator_(communicator),
      traits_(with_chunk(communicator.transport().traits(), chunk)),
      scratch_(traits_.chunk.count, communicator.memory()),
      memory_(communicator.operations(), kColdBytes) {
  const std::vector<int> host = host_of_rank(communicator.peers().hosts);
  for (std::size_t rank = 0; rank < host.size(); ++rank) {
    if (static_cast<std::size_t>(host[rank]) == first_rank_.size()) {
      first_rank_.push_back(static_cast<int>(rank));
    }
  }
}

/// A copy that was given up may still be under way.
Follower::~Follower() { communicator_.operations().drain(); }

FollowerReport Follower::perform(const Command& command) {
  FollowerReport report;
  report.head.sequence = command.sequence;
  report.head.received = now();
  if (command.action == Action::kMeasure) {
    try {
      measure(command, report);
    } catch (const GaveUp& gave_up) {
      report.head.failed = Failure::kGaveUp;
      report.head.waited_for = gave_up.waited_for;
      report.ends.clear();
    } catch (const Error& error) {
      // The same on every rank, before anything is sent.
      if (error.code() != ErrorCode::kUnavailable) throw;
      report.head.failed = Failure::kUnavailable;
      report.ends.clear();
      why_unavailable_ = error.what();
    }
  }
  return report;
}

/// As a plan on this road would have it; messages alone go as fast as they will.
void Follower::pace(const Command& command) {
  const Road& road = command.quantity.road;
  const std::pair paced{road, command.quantity.workers};
  if (command.pace == pace_ && (paced == paced_for_ || !(command.pace > 0))) return;
  pace_ = command.pace;
  paced_for_ = paced;
  communicator_.transport().set_pace(command.pace);
  const HostLayout hosts(communicator_.peers(), command.quantity.workers);
  communicator_.set_shares(command.pace > 0 ? link_shares(road, hosts, communicator_.rank())
                                            : std::vector<double>(communicator_.peers().hosts.size(), 1.0));
}

void Follower::measure(const Command& command, FollowerReport& report) {
  join_library(command);
  pace(command);
  switch (command.quantity.subject) {
    case Subject::kMessage:
    case Subject::kExchange:
      return measure_pair(command, report);
    case Subject::kOperation:
      return measure_operation(command, report);
    case Subject::kHeadOfLine:
      return measure_head_of_line(command, report);
    case Subject::kSum:
    case Subject::kCopy:
      return measure_memory(command, report);
    case Subject::kCast:
    case Subject::kCastSum:
      return measure_casts(command, report);
    case Subject::kStep:
    case Subject::kJitter:
      return measure_steps(command, report);
    case Subject::kTraffic:
      return measure_traffic(command, report);
    case Subject::kLaunch:
      return measure_launch(command, report);
    case Subject::kUpload:
    case Subject::kDownload:
      return measure_host_copies(command, report);
    case Subject::kPlan:
      throw Error(ErrorCode::kBadInput, "a probe does not run whole plans");
  }
}

// --- time -----------------------------------------------------------------------------------------------

void Follower::wait_for_start(Nanoseconds start) {
  while (now() < start) communicator_.progress(at(start));
}

void Follower::progress_until(const std::function<bool()>& done, Deadline until) {
  while (!done()) {
    if (Clock::now() >= until) {
      const auto pending = communicator_.oldest();
      throw GaveUp{pending ? pending->peer : -1};
    }
    communicator_.progress(until);
  }
}

void Follower::finish(Job& job, Deadline until) {
  const ShortTurns turns;  // as the thread of an Engine
  for (Task& task : job.tasks) task.start();
  progress_until(
      [&] {
        return std::all_of(job.tasks.begin(), job.tasks.end(), [](const Task& task) { return task.done(); });
      },
      until);
  for (const Task& task : job.tasks) task.result();
}

Follower::Job::Job(const Command& given, const Peers& peers, const TransferTraits& traits)
    : command(given),
      hosts(peers, given.quantity.workers),
      sending{command, {}, {}, 0, 0},
      receiving{command, {}, {}, 0, 0} {
  for (Flow* flow : {&sending, &receiving}) {
    flow->settings.workers = command.quantity.workers;
    flow->settings.take(traits);
    flow->ends.assign(static_cast<std::size_t>(command.messages), Nanoseconds{0});
    flow->base = static_cast<std::uint32_t>(command.sequence * kMostEnds % kTagRange);
  }
}

Follower::Job& Follower::new_job(const Command& command) {
  job_ = std::make_unique<Job>(command, communicator_.peers(), traits_);
  job_->library = library_of(command);
  return *job_;
}

void Follower::join_library(const Command& command) {
  Plan by_it;
  by_it.road = command.quantity.road;
  by_it.workers = command.quantity.workers;
  const NcclTuning& tuning = command.quantity.nccl;
  const std::pair asked{by_it.workers, tuning};
  if (by_it.road != Road{AllReduce{Collective::kLibrary}} || joined_ == asked) return;
  if (!tuning.is_own_choice()) by_it.library = "nccl:" + commtune::to_string(tuning);
  collectives_.reset();
  joined_.reset();
  library_.join(communicator_, by_it, Clock::now() + kLibraryLimit);
  if (library_.get() != nullptr) collectives_.emplace(communicator_, *library_.get());
  joined_ = asked;
}

LibraryQueue* Follower::library_of(const Command& command) {
  if (command.quantity.road != Road{AllReduce{Collective::kLibrary}}) return nullptr;
  return &*collectives_;
}

// --- operations -----------------------------------------------------------------------------------------

Task Follower::run_message(Job& job, int number, Buffer data) {
  Flow& flow = job.sending;
  const Quantity& quantity = flow.command.quantity;
  const RoadMessage on_its_way{
      communicator_, scratch_, flow.settings, job.hosts,  flow.base + static_cast<std::uint32_t>(number),
      data,          nullptr,  nullptr,       job.library};
  co_await run_operation(quantity.road, quantity.operation, on_its_way, job.server.get());
  flow.ends[static_cast<std::size_t>(number)] = now();
}

Task Follower::run_messages(Job& job, std::size_t index) {
  Flow& flow = job.sending;
  for (std::size_t passed = 0; flow.next < flow.command.messages; ++passed) {
    const int message = flow.next++;
    co_await run_message(job, message, memory_.place(index, passed));
  }
}

void Follower::open_servers(Job& job) {
  match(
      job.command.quantity.road, [](const AllReduce&) {},
      [&](const ParameterServer& servers) { open_server(job, servers); });
}

void Follower::close_servers(Job& job, Deadline until) {
  match(
      job.command.quantity.road, [](const AllReduce&) {},
      [&](const ParameterServer& servers) { close_server(job, servers, until); });
}

void Follower::open_server(Job& job, const ParameterServer& road) {
  const Command& command = job.command;
  job.sending.base = 0;  // servers know messages by number
  if (server_of(road, command.quantity.workers, communicator_.rank()) < 0) return;
  job.server = std::make_unique<Server>(
      communicator_, scratch_, job.sending.settings, job.hosts, road,
      std::vector<std::size_t>(static_cast<std::size_t>(command.messages), command.bytes));
  job.server->start();
}

void Follower::close_server(Job& job, const ParameterServer& road, Deadline until) {
  job.tasks.clear();
  if (communicator_.rank() < job.command.quantity.workers) {
    job.tasks.push_back(say_goodbye(communicator_, job.sending.settings, road));
  }
  finish(job, until);
  if (job.server) progress_until([&] { return job.server->finished(); }, until);
}

void Follower::check_sums(const Command& command) {
  if (const auto wrong = memory_.first_wrong()) {
    throw Error(ErrorCode::kConflict, describe(communicator_.peers(), communicator_.rank()) + ": " +
                                          describe(command.quantity) + ", element " +
                                          std::to_string(wrong->element) + ": the mean of ones is " +
                                          std::to_string(wrong->value));
  }
}

bool Follower::takes_part(const Command& command) const {
  const int workers = command.quantity.workers, rank = communicator_.rank();
  return rank < workers ||
         match(
             command.quantity.road, [](const AllReduce&) { return false; },
             [&](const ParameterServer& servers) { return server_of(servers, workers, rank) >= 0; });
}

void Follower::measure_operation(const Command& command, FollowerReport& report) {
  if (!takes_part(command)) return;
  const Quantity& quantity = command.quantity;
  const bool works = communicator_.rank() < quantity.workers;
  const auto slots = works ? static_cast<std::size_t>(std::min(quantity.in_flight, command.messages)) : 0;
  memory_.lay_out(slots, static_cast<std::size_t>(command.messages), command.bytes, Places::kAll);
  Job& job = new_job(command);
  open_servers(job);
  for (std::size_t i = 0; i < slots; ++i) job.tasks.push_back(run_messages(job, i));
  wait_for_start(command.start);
  const Nanoseconds started = now();
  const Deadline until = at(started + command.limit);
  finish(job, until);
  if (works) {
    report.head.started = started;
    report.ends = told(command, job.sending.ends);
  }
  close_servers(job, until);
  if (ends_with_sum(quantity.operation)) {
    check_sums(command);
  } else {
    memory_.refill();  // a stage alone leaves parts of sums behind
  }
}

/// Message 0, the most urgent, once the others are under way: through servers when the first of them is back;
/// all-to-all, where the first may be back no sooner than the last, when all have begun.
Task Follower::run_urgent(Job& job) {
  if (goes_through_servers(job.command.quantity.road)) co_await job.streaming.empty();
  job.urgent_start = now();
  co_await run_message(job, 0, memory_.place(0));
}

/// One of the others; the first of them to be back says that they are under way.
Task Follower::run_in_stream(Job& job, int number) {
  co_await run_message(job, number, memory_.place(static_cast<std::size_t>(number)));
  if (job.streaming.pending() > 0) job.streaming.release();
}

void Follower::measure_head_of_line(const Command& command, FollowerReport& report) {
  if (!takes_part(command)) return;
  const bool works = communicator_.rank() < command.quantity.workers;
  const auto slots = works ? static_cast<std::size_t>(command.messages) : 0;
  memory_.lay_out(slots, slots, command.bytes, Places::kAll);
  Job& job = new_job(command);
  open_servers(job);
  job.streaming.hold();
  for (int i = 1; works && i < command.messages; ++i) job.tasks.push_back(run_in_stream(job, i));
  if (works) job.tasks.push_back(run_urgent(job));
  wait_for_start(command.start);
  const Deadline until = at(now() + command.limit);
  finish(job, until);
  if (works) {
    report.head.started = job.urgent_start;
    report.ends = {job.sending.ends.front()};
  }
  close_servers(job, until);
  check_sums(command);
}

// --- pairs ----------------------------------------------------------------------------------------------

std::optional<Pair> Follower::pair_of(const Command& command) const {
  const int me = communicator_.rank();
  if (command.pairing == Pairing::kNone) {
    const Pair pair{command.quantity.source, command.quantity.destination};
    return me == pair.first || me == pair.second ? std::optional(pair) : std::nullopt;
  }
  const auto rounds = tournament(static_cast<int>(first_rank_.size()));
  for (const auto& [first, second] : rounds[static_cast<std::size_t>(command.round)]) {
    const int a = first_rank_[static_cast<std::size_t>(first)];
    const int b = first_rank_[static_cast<std::size_t>(second)];
    if (me == a || me == b) return command.pairing == Pairing::kForward ? Pair{a, b} : Pair{b, a};
  }
  return std::nullopt;
}

Task Follower::send_messages(Flow& flow, int to, std::size_t index) {
  const ConstBuffer data = memory_.place(index);
  while (flow.next < flow.command.messages) {
    const auto message = static_cast<std::uint32_t>(flow.next++);
    co_await communicator_.send(to, make_tag(TagSpace::kReduce, flow.base + message), data);
  }
}

Task Follower::receive_messages(Flow& flow, int from, std::size_t index) {
  const Buffer data = memory_.place(index);
  while (flow.next < flow.command.messages) {
    const auto message = static_cast<std::uint32_t>(flow.next++);
    co_await communicator_.receive(from, make_tag(TagSpace::kReduce, flow.base + message), data);
    flow.ends[message] = now();
  }
}

/// There and back, again and again; `ends` are durations.
Task Follower::round_trips(Flow& flow, int with) {
  const Buffer out = memory_.place(0);
  const Buffer in = memory_.place(1);
  for (Nanoseconds& duration : flow.ends) {
    const auto tag = make_tag(TagSpace::kReduce, flow.base + static_cast<std::uint32_t>(flow.next++));
    const Nanoseconds start = now();
    const Transfer back = communicator_.receive(with, tag, in);
    co_await communicator_.send(with, tag, out);
    co_await back;
    duration = after(start);
  }
}

Task Follower::echoes(Flow& flow, int with) {
  const Buffer data = memory_.place(0);
  for (; flow.next < flow.command.messages; ++flow.next) {
    const auto tag = make_tag(TagSpace::kReduce, flow.base + static_cast<std::uint32_t>(flow.next));
    co_await communicator_.receive(with, tag, data);
    co_await communicator_.send(with, tag, data);
  }
}

void Follower::measure_pair(const Command& command, FollowerReport& report) {
  const std::optional<Pair> pair = pair_of(command);
  if (!pair) return;
  const bool source = communicator_.rank() == pair->first;
  const int other = source ? pair->second : pair->first;
  const auto slots = static_cast<std::size_t>(std::min(command.quantity.in_flight, command.messages));
  memory_.lay_out(2 * slots, static_cast<std::size_t>(command.messages), command.bytes, Places::kOne);
  Job& job = new_job(command);
  const bool both_ways = command.quantity.subject == Subject::kExchange;
  if (command.quantity.in_flight == 1 && !both_ways) {
    job.tasks.push_back(source ? round_trips(job.receiving, other) : echoes(job.sending, other));
  } else {
    for (std::size_t i = 0; i < slots; ++i) {
      if (!source || both_ways) job.tasks.push_back(receive_messages(job.receiving, other, slots + i));
      if (source || both_ways) job.tasks.push_back(send_messages(job.sending, other, i));
    }
  }
  wait_for_start(command.start);
  report.head.started = now();
  finish(job, at(report.head.started + command.limit));
  const bool timed = both_ways || (command.quantity.in_flight == 1) == source;
  if (timed) report.ends = told(command, job.receiving.ends);
}

// --- memory ---------------------------------------------------------------------------------------------

/// Every rank works at once, as in a training job, where the ranks of a host share its memory and its cores;
/// the source reports.
///
/// room  bytes of each of a message's two places
/// work  done with them, into the first and from the second, no later than the third; what takes time
template <typename Work>
void Follower::measure_on_memory(const Command& command, std::size_t room, Places places, const Work& work,
                                 FollowerReport& report) {
  memory_.lay_out(2, 2 * static_cast<std::size_t>(command.messages), room, places);
  const bool reports = communicator_.rank() == command.quantity.source;
  wait_for_start(command.start);
  report.head.started = now();
  const Deadline until = at(report.head.started + command.limit);
  for (std::size_t i = 0; i < static_cast<std::size_t>(command.messages); ++i) {
    const Nanoseconds start = now();
    wait_for(work(memory_.place(0, i), memory_.place(1, i), until), until);
    if (reports) report.ends.push_back(after(start));
  }
}

/// On the host it has ended.
void Follower::wait_for(const AsyncOperation& operation, Deadline until) {
  progress_until([&] { return operation.has_ended(); }, until);
}

/// What is summed has just arrived; what is copied, a gradient, was written long before.
void Follower::measure_memory(const Command& command, FollowerReport& report) {
  MemoryQueue& operations = communicator_.operations();
  if (command.quantity.subject != Subject::kSum) {
    const auto copy = [&](Buffer into, ConstBuffer from, Deadline) { return operations.copy(into, from); };
    return measure_on_memory(command, command.bytes, Places::kAll, copy, report);
  }
  const auto sum = [&](Buffer into, ConstBuffer from, Deadline) {
    return operations.add(DataType::kFloat32, into, from);
  };
  measure_on_memory(command, command.bytes, Places::kOne, sum, report);
  memory_.refill();
}

/// As of sums and copies, of the messages of a plan that casts.
void Follower::measure_casts(const Command& command, FollowerReport& report) {
  const DataType type = wire_type(command.quantity.wire, DataType::kFloat32);
  MemoryQueue& operations = communicator_.operations();
  if (command.quantity.subject == Subject::kCastSum) {
    const auto sum = [&](Buffer into, ConstBuffer from, Deadline) {
      return operations.add(type, into, from);
    };
    measure_on_memory(command, command.bytes, Places::kOne, sum, report);
  } else {
    std::atomic<std::uint64_t> overflows{0};
    const auto cast = [&](Buffer room, Buffer gradient, Deadline until) {
      const Buffer wire = room.first(command.bytes);
      const std::span<const Buffer> parts(&gradient, 1);
      wait_for(operations.encode(type, wire, parts, 1.0F), until);
      return operations.decode(parts, type, wire, overflows);
    };
    // A gradient has twice the bytes.
    measure_on_memory(command, 2 * command.bytes, Places::kAll, cast, report);
  }
  memory_.refill();
}

/// As the executor starts and awaits one.
void Follower::measure_launch(const Command& command, FollowerReport& report) {
  const auto launch = [&](Buffer data, ConstBuffer, Deadline) {
    return communicator_.operations().scale(DataType::kFloat32, data, 1.0F);
  };
  measure_on_memory(command, sizeof(float), Places::kOne, launch, report);
}

void Follower::measure_host_copies(const Command& command, FollowerReport& report) {
  const std::size_t bytes = command.bytes;
  if (!host_block_ || host_block_->buffer().bytes < bytes) {
    host_block_.reset();
    host_block_.emplace(host_memory(), bytes, &communicator_);
    std::ranges::fill(host_block_->buffer().host(), std::byte{0});  // all of its pages are there
  }
  const Buffer host = host_block_->buffer().first(bytes);
  const bool uploads = command.quantity.subject == Subject::kUpload;
  const auto copy = [&](Buffer device, ConstBuffer, Deadline) {
    return uploads ? communicator_.operations().copy(device, host)
                   : communicator_.operations().copy(host, device);
  };
  measure_on_memory(command, bytes, Places::kAll, copy, report);
  memory_.refill();
}

// --- compute and traffic --------------------------------------------------------------------------------

std::unique_ptr<ComputeStep> Follower::make_step(const Command& command) const {
  switch (command.steps) {
    case StepKind::kTimeline:
      return make_timeline_step();
    case StepKind::kProcessor:
      return make_processor_step();
    case StepKind::kGpu:
      return make_gpu_step(gpu_of_rank(communicator_.peers()), command.sm_share);
  }
  return nullptr;
}

/// Steps on a thread of their own, as in a training process: alone, or while all-reduces keep the network
/// busy. Only steps that lie within that time count.
void Follower::measure_steps(const Command& command, FollowerReport& report) {
  ComputeLoad compute_load(make_step(command));
  wait_for_start(command.start);
  report.head.started = now();
  if (command.quantity.in_flight == 0) {
    report.ends = compute_load.run(command.messages);
    return;
  }
  const auto slots = static_cast<std::size_t>(command.quantity.in_flight);
  memory_.lay_out(slots, static_cast<std::size_t>(command.messages), command.bytes, Places::kAll);
  Job& job = new_job(command);
  for (std::size_t i = 0; i < slots; ++i) job.tasks.push_back(run_messages(job, i));
  compute_load.start();
  finish(job, at(report.head.started + command.limit));
  report.ends = compute_load.stop();
}

/// The steps have begun when the messages do.
void Follower::measure_traffic(const Command& command, FollowerReport& report) {
  std::optional<ComputeLoad> beside;
  if (command.quantity.computing) beside.emplace(make_step(command)).start();
  measure_operation(command, report);
  if (beside) beside->stop();
}

}  // namespace commtune::probes
