#include "executor/engine/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <climits>
#include <set>
#include <utility>
#include <variant>

#include "executor/base/short_turns.h"
#include "executor/engine/link_share.h"
#include "executor/roads/all_reduce/all_reduce.h"
#include "perfmodel/base/error.h"
#include "perfmodel/base/overloaded.h"

namespace commtune {
namespace {

constexpr std::int32_t kFailed = INT_MIN / 2;
/// How often the communication thread looks for what is late.
constexpr std::chrono::milliseconds kWatchInterval{500};

/// An entry of released_: the message in these bits, the iteration above them.
constexpr unsigned kMessageBits = 26;
static_assert(std::uint64_t{1} << kMessageBits == kLaneNumbers);

std::uint64_t release_entry(std::uint64_t iteration, std::uint32_t message) {
  return iteration << kMessageBits | message;
}

/// The tensors that a message carries, each once.
std::vector<TensorId> carried_tensors(const Message& message) {
  std::set<TensorId> tensors;
  for (const Piece& piece : message.pieces) tensors.insert(piece.tensor);
  return {tensors.begin(), tensors.end()};
}

/// The order in which the plan would have its steps on the wire.
Urgency urgency_of(const Plan& plan, const TagNumbers& numbers) {
  std::vector<std::uint32_t> order(plan.messages.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  if (plan.order == Order::kPriority) {
    std::sort(order.begin(), order.end(),
              [&](std::uint32_t a, std::uint32_t b) { return plan.priority[a] < plan.priority[b]; });
  }
  Urgency urgency;
  urgency.reduce.resize(numbers.count());
  for (std::uint32_t i = 0; i < order.size(); ++i) {
    for (const std::uint32_t number : numbers.of_message(order[i])) urgency.reduce[number] = i;
  }
  urgency.distribute = urgency.reduce;
  for (std::uint32_t i = 0; i < plan.sequence.size(); ++i) {
    const auto [message, stage] = plan.sequence[i];
    const bool pulls = stage == Stage::kDistribute && !plan.pulls.empty();
    for (const std::uint32_t number : pulls ? numbers.of_pull(message) : numbers.of_message(message))
      (stage == Stage::kReduce ? urgency.reduce : urgency.distribute)[number] = i;
  }
  if (plan.pulls.empty()) return urgency;
  // A worker may be an iteration ahead of another one. Where its pushes went before the sums that the other
  // still waits for, the two would take turns, and each would leave the network idle for as long.
  for (std::uint32_t& each : urgency.reduce) each += static_cast<std::uint32_t>(plan.sequence.size());
  return urgency;
}

std::size_t largest_message(const Plan& plan) {
  std::size_t largest = 64;
  for (const Message& message : plan.messages) {
    largest = std::max<std::size_t>(largest, wire_bytes(plan, message).count);
  }
  return largest;
}

/// What roads are told where gradients are cast: they sum in the wire's type, of what is divided already.
EngineOptions on_wire(EngineOptions options, const Plan& plan) {
  if (plan.wire == WireFormat::kAsIs) return options;
  options.road.type = wire_type(plan.wire, options.road.type);
  options.road.result = Result::kSum;
  return options;
}

bool is_worker(const Communicator& communicator, const Plan& plan) {
  return communicator.rank() < plan.workers;
}

Clock::duration as_clock(Seconds time) { return std::chrono::duration_cast<Clock::duration>(time); }

std::string to_string(Stage stage) { return stage == Stage::kReduce ? "reduce" : "distribute"; }

}  // namespace

RoadSettings make_settings(const Plan& plan, DataType type, Result result, const TransferTraits& traits) {
  RoadSettings settings;
  settings.workers = plan.workers;
  settings.server = plan.server;
  settings.type = type;
  settings.result = result;
  settings.take(traits);
  return settings;
}

struct Engine::MessageState {
  std::uint32_t number = 0;  // of the message, or of the pull
  bool is_pull = false;
  const Message* carried = nullptr;
  std::span<const std::uint32_t> numbers;  // by which it travels
  std::vector<TensorId> tensors;           // that it carries
  std::size_t bytes = 0;                   // on the wire
  std::optional<MessageBuffer> buffer;     // workers
  Buffer data;                             // while it is under way
  MessageTimes* times = nullptr;
  Stage stage = Stage::kReduce;
  Clock::time_point stage_started;
  Stage started_with = Stage::kReduce;   // of the step that is under way
  std::uint64_t sent_before = 0;         // when that started
  std::array<std::uint64_t, 2> sends{};  // bytes that such a step sends, by the stage it starts with
  bool credited = false;                 // the credit counts it
  Engine* engine = nullptr;
  Task task;

  static void reached(void* context, Stage stage) {
    if (stage != Stage::kReduce) return;
    auto& message = *static_cast<MessageState*>(context);
    message.times->reduced = message.times->distributing = Clock::now();
    message.stage = Stage::kDistribute;
    // What a worker pushed is the servers' from here on (Plan::credit).
    Engine& engine = *message.engine;
    if (goes_through_servers(engine.plan_.road)) engine.give_back_credit(message);
  }
};

Engine::Engine(Communicator& communicator, const Plan& plan, const TensorLayout& layout,
               const Gradients& gradients, const EngineOptions& options)
    : communicator_(communicator),
      plan_(plan),
      options_(on_wire(options, plan)),
      hosts_(communicator.peers(), plan.workers),
      numbers_(plan),
      tensors_in_(plan.messages.size()),
      carriers_of_(layout.tensors.size(), 0),
      back_by_(layout.tensors.size(), 0),
      ready_in_(layout.tensors.size()),
      missing_(plan.messages.size()),
      asked_(layout.tensors.size()),
      released_(plan.messages.size()),
      left_(layout.tensors.size()),
      times_(plan.messages.size() + plan.pulls.size()),
      sent_before_(communicator.sent()),
      scratch_(std::min<std::size_t>(options.road.chunk.count, largest_message(plan)), communicator.memory(),
               &communicator),
      fusion_(communicator.memory(), &communicator),
      step_order_(plan),
      taken_(plan.messages.size()) {
  for (const Tensor& tensor : layout.tensors) tensor_names_.push_back(tensor.name);
  for (const Buffer& stretch : stretches(gradients)) registrations_.emplace_back(stretch, &communicator);
  make_messages(gradients, options.road.result);
  find_carriers();
  match(
      plan.road, [](const AllReduce&) {}, [&](const ParameterServer& servers) { make_server(servers); });
  if (options.library != nullptr) library_.emplace(communicator, *options.library);
  active_.reserve(messages_.size() + pulls_.size());
  communicator.set_urgency(urgency_of(plan, numbers_));
  communicator.set_shares(link_shares(plan.road, hosts_, communicator.rank()));
  thread_ = std::thread([this] { communicate(); });
}

Engine::~Engine() {
  if (!thread_.joinable()) return;
  stopping_ = true;
  communicator_.transport().wake();
  thread_.join();
}

void Engine::make_messages(const Gradients& gradients, Result result) {
  const std::optional<Codec> codec = codec_of(plan_.wire, result == Result::kMean ? plan_.workers : 1);
  const auto make = [&](const Message& message, std::span<const std::uint32_t> numbers, std::size_t number) {
    auto state = std::make_unique<MessageState>();
    state->number = static_cast<std::uint32_t>(number);
    state->carried = &message;
    state->numbers = numbers;
    state->tensors = carried_tensors(message);
    state->bytes = wire_bytes(plan_, message).count;
    state->engine = this;
    if (is_worker(communicator_, plan_)) state->buffer.emplace(message, gradients, codec);
    return state;
  };
  for (std::size_t i = 0; i < plan_.messages.size(); ++i) {
    messages_.push_back(make(numbers_.messages()[i], numbers_.of_message(i), i));
    messages_.back()->times = &times_[i];
  }
  for (std::size_t i = 0; i < plan_.pulls.size(); ++i) {
    pulls_.push_back(make(numbers_.pulls()[i], numbers_.of_pull(i), i));
    pulls_.back()->is_pull = true;
    pulls_.back()->times = &times_[plan_.messages.size() + i];
  }
}

void Engine::make_server(const ParameterServer& road) {
  if (server_of(road, plan_.workers, communicator_.rank()) < 0) return;
  server_ = std::make_unique<Server>(communicator_, scratch_, options_.road, hosts_, road, numbers_.bytes(),
                                     pulls_.empty() ? Answers::kAtOnce : Answers::kAsked);
  server_->record(options_.served_limit);
}

// ---- The compute side ----

void Engine::find_carriers() {
  for (const auto& message : messages_) {
    tensors_in_[message->number] = static_cast<std::int32_t>(message->tensors.size());
    for (const TensorId tensor : message->tensors) ++carriers_of_[tensor];
  }
  for (const auto& message : bringing_back()) {
    for (const TensorId tensor : message->tensors) ++back_by_[tensor];
  }
  first_carrier_.push_back(0);
  for (const std::int32_t count : carriers_of_) {
    first_carrier_.push_back(first_carrier_.back() + static_cast<std::size_t>(count));
  }
  carriers_.resize(first_carrier_.back());
  std::vector<std::size_t> next(first_carrier_.begin(), first_carrier_.end() - 1);
  for (const auto& message : messages_) {
    for (const TensorId tensor : message->tensors) carriers_[next[tensor]++] = message->number;
  }
}

void Engine::check_all_back() const {
  const auto refuse = [](const std::string& what) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("begin_iteration: {} of the iteration before: wait for it first", what));
  };
  if (asks_for_all()) {
    if (const std::int32_t left = all_left_; left > 0) refuse(fmt::format("{} messages are not back", left));
    return;
  }
  for (std::size_t tensor = 0; tensor < left_.size(); ++tensor) {
    if (left_[tensor] > 0) refuse(fmt::format("gradient {} is not back", tensor_names_[tensor]));
  }
}

void Engine::rethrow_failure() const {
  if (failed_) std::rethrow_exception(failure_);
}

void Engine::watch_peers(bool all) {
  watches_peers_ = all;
  communicator_.transport().wake();
}

void Engine::begin_iteration() {
  rethrow_failure();
  check_all_back();
  ++iteration_;
  next_place_ = 0;
  all_missing_ = static_cast<std::int32_t>(tensor_names_.size());
  for (std::size_t i = 0; i < missing_.size(); ++i)
    missing_[i].store(tensors_in_[i], std::memory_order_relaxed);
  // Only what the barrier asks for is counted: when that is zero, the communication thread touches it no
  // more.
  if (asks_for_all()) {
    all_left_ = static_cast<std::int32_t>(bringing_back().size());
  } else {
    for (std::size_t tensor = 0; tensor < left_.size(); ++tensor) left_[tensor] = back_by_[tensor];
  }
  // fail() sets failed_ first and then the counters: one of the two orders is seen.
  rethrow_failure();
}

void Engine::note_ready(TensorId tensor) {
  const std::uint64_t iteration = iteration_.load(std::memory_order_relaxed);
  if (ready_in_[tensor].load(std::memory_order_relaxed) == iteration) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("ready: gradient {} was ready already in this iteration", tensor_names_[tensor]));
  }
  ready_in_[tensor].store(iteration, std::memory_order_relaxed);
}

void Engine::release(std::uint32_t message) {
  times_[message].queued = Clock::now();
  const std::size_t place = next_place_.fetch_add(1, std::memory_order_relaxed);
  released_[place].store(release_entry(iteration_.load(std::memory_order_relaxed), message),
                         std::memory_order_release);
}

void Engine::ready(TensorRange tensors) {
  for (TensorId tensor = tensors.first; tensor < tensors.end; ++tensor) note_ready(tensor);
  bool any = false;
  // Who brings the last tensor sees what every other thread wrote into its own before it said so: the
  // counters are acquired and released.
  if (plan_.release == Release::kBackward) {
    const auto count = static_cast<std::int32_t>(tensors.end - tensors.first);
    any = count > 0 && all_missing_.fetch_sub(count, std::memory_order_acq_rel) == count;
    for (std::uint32_t message = 0; any && message < messages_.size(); ++message) release(message);
  } else {
    const std::size_t end = first_carrier_[tensors.end];
    for (std::size_t i = first_carrier_[tensors.first]; i < end; ++i) {
      if (missing_[carriers_[i]].fetch_sub(1, std::memory_order_acq_rel) != 1) continue;
      release(carriers_[i]);
      any = true;
    }
  }
  if (any) communicator_.transport().wake();
}

bool Engine::wait_until_none(const std::atomic<std::int32_t>& left) {
  bool waited = false;
  for (std::int32_t now = left.load(); now != 0; now = left.load()) {
    if (now < 0) std::rethrow_exception(failure_);
    waited = true;
    left.wait(now);
  }
  return waited;
}

bool Engine::is_back(TensorRange tensors) const {
  if (asks_for_all()) return all_left_ == 0;
  for (TensorId tensor = tensors.first; tensor < tensors.end; ++tensor) {
    if (left_[tensor] != 0) return false;
  }
  return true;
}

bool Engine::wait(TensorRange tensors, Clock::time_point asked) {
  const Clock::rep when = asked.time_since_epoch().count();
  bool waited = false;
  for (TensorId tensor = tensors.first; tensor < tensors.end; ++tensor) {
    asked_[tensor].store(when, std::memory_order_relaxed);
    if (!asks_for_all()) waited = wait_until_none(left_[tensor]) || waited;
  }
  if (asks_for_all()) waited = wait_until_none(all_left_);
  return waited;
}

void Engine::finish() {
  finishing_ = true;
  communicator_.transport().wake();
  thread_.join();
  if (failed_) std::rethrow_exception(failure_);
}

std::span<const MessageTimes> Engine::times() {
  for (const auto& message : messages_) {
    message->times->used = Clock::time_point(Clock::duration(asked_[message->tensors.front()].load()));
    if (pulls_.empty()) continue;
    for (const std::uint32_t number : message->numbers) {
      const MessageTimes& pull = *pulls_[numbers_.pull_of(number)]->times;
      message->times->distributed = std::max(message->times->distributed, pull.distributed);
    }
  }
  return std::span(times_).first(messages_.size());
}

std::span<const MessageTimes> Engine::pull_times() {
  for (const auto& pull : pulls_)
    pull->times->used = Clock::time_point(Clock::duration(asked_[pull->tensors.front()].load()));
  return std::span(times_).subspan(messages_.size());
}

std::vector<Served> Engine::served() const { return served_; }

std::uint64_t Engine::buffer_bytes() const { return buffer_bytes_; }

EngineCounts Engine::counts() const { return {copying_, sent_, overflows_}; }

// ---- The communication thread ----

void Engine::communicate() noexcept {
  const ShortTurns turns;
  try {
    run_until_finished();
  } catch (const MessageError& error) {
    failure_ = std::make_exception_ptr(Error(error.code(), error.what() + words_of(error.tag())));
    fail();
  } catch (...) {
    failure_ = std::current_exception();
    fail();
  }
  if (options_.library != nullptr && (failed_ || under_way_ > 0)) options_.library->give_up();
  communicator_.operations().drain();  // gradients are their owner's again
  end_tasks();
}

std::string Engine::words_of(Tag tag) const {
  const std::uint32_t number = message_of(tag);
  if (tag_space_of(tag) == TagSpace::kControl || number >= numbers_.count()) return "";
  const Stage stage = tag_space_of(tag) == TagSpace::kReduce ? Stage::kReduce : Stage::kDistribute;
  const bool pull = stage == Stage::kDistribute && !pulls_.empty();
  const MessageState& message =
      pull ? *pulls_[numbers_.pull_of(number)] : *messages_[numbers_.message_of(number)];
  return fmt::format("; in the {} stage of {}", to_string(stage), words_of(message));
}

std::string Engine::words_of(const MessageState& message) const {
  const std::vector<Piece>& pieces = message.carried->pieces;
  std::string tensors = tensor_names_[pieces.front().tensor];
  if (pieces.size() > 1) tensors += fmt::format(" and {} more", pieces.size() - 1);
  return fmt::format("{} {} ({})", message.is_pull ? "pull" : "message", message.number, tensors);
}

void Engine::end_tasks() noexcept {
  // Here, since their frames go back to the pool of this thread: in another's they would pile up, engine by
  // engine.
  for (const auto* list : {&messages_, &pulls_}) {
    for (const auto& message : *list) message->task = {};
  }
  if (!server_) return;
  served_ = server_->served();
  for (Served& served : served_) served.number = numbers_.message_of(served.number);
  server_.reset();
}

void Engine::fail() noexcept {
  failed_ = true;
  for (std::atomic<std::int32_t>& left : left_) {
    left = kFailed;
    left.notify_all();
  }
  all_left_ = kFailed;
  all_left_.notify_all();
}

void Engine::run_until_finished() {
  if (server_) server_->start();
  Task goodbye;
  while (!stopping_) {
    take_released();
    start_what_may();
    reap();
    const Clock::time_point now = Clock::now();
    if (now >= next_watch_) watch(now);
    if (under_way_ == 0 && finishing_) {
      if (is_worker(communicator_, plan_) && !goodbye.valid()) {
        goodbye = leave_road();
        if (goodbye.valid()) goodbye.start();
      }
      const bool served = !server_ || server_->finished();
      if (served && (!goodbye.valid() || goodbye.done())) return note_counts();
    }
    communicator_.progress(next_watch_);
    if (watches_peers_) communicator_.transport().check_peers();
  }
}

void Engine::take_released() {
  if (messages_.empty()) return;
  for (;;) {
    // Behind the last of an iteration comes the first of the next one.
    const bool first = taken_ == messages_.size();
    const std::uint64_t entry = released_[first ? 0 : taken_].load(std::memory_order_acquire);
    const std::uint64_t iteration = iteration_seen_ + (first ? 1 : 0);
    if (entry >> kMessageBits != iteration) return;
    if (first) {
      iteration_seen_ = iteration;
      taken_ = 0;
      step_order_.begin();
    }
    ++taken_;
    step_order_.release(static_cast<std::uint32_t>(entry % kLaneNumbers));
  }
}

void Engine::start_what_may() {
  while (const std::optional<NextStep> step = step_order_.next()) {
    if (!may_start(*step)) return;
    step_order_.started();
    start(*step);
  }
}

/// The credit holds back what no rank has begun. What one has, whose credit allowed it, waits for all others:
/// ranks that asked only their own would wait for each other in turn, message by message. Without a credit a
/// message has the channel to itself, and so on every rank.
bool Engine::may_start(const NextStep& step) const {
  if (is_pull(step)) return true;
  const Bytes credit = credit_of(plan_, step.message);
  if (credit_allows(credit)) return true;
  if (credit == Bytes{0} || goes_through_servers(plan_.road)) return false;
  const TagSpace space = step.stage == Stage::kReduce ? TagSpace::kReduce : TagSpace::kDistribute;
  return communicator_.came_early(space, step.message);
}

bool Engine::credit_allows(Bytes credit) const {
  if (credited_bytes_ <= credit.count) return true;
  std::uint64_t left = 0;
  for (const MessageState* message : active_) {
    if (message->credited) left += left_to_send(*message);
  }
  return left <= credit.count;
}

/// Bytes of its current kind of step that have left, over all iterations.
std::uint64_t Engine::sent(const MessageState& message) const {
  std::uint64_t pushed = 0;
  for (const std::uint32_t number : message.numbers) pushed += communicator_.sent(TagSpace::kReduce, number);
  if (goes_through_servers(plan_.road)) return pushed;
  return pushed + communicator_.sent(TagSpace::kDistribute, message.number);
}

/// In the message's own bytes. How much a rank sends for a message is the road's business; it is the same in
/// every iteration, so the one before tells.
std::uint64_t Engine::left_to_send(const MessageState& message) const {
  const std::uint64_t whole = message.sends[static_cast<std::size_t>(message.started_with)];
  if (whole == 0) return message.bytes;
  const std::uint64_t done = std::min(sent(message) - message.sent_before, whole);
  return message.bytes - static_cast<std::uint64_t>(static_cast<double>(message.bytes) *
                                                    static_cast<double>(done) / static_cast<double>(whole));
}

void Engine::start(const NextStep& step) {
  MessageState& message = *(is_pull(step) ? pulls_ : messages_)[step.message];
  ++under_way_;
  if (!is_pull(step)) {
    ++credited_;
    credited_bytes_ += message.bytes;
    message.credited = true;
  }
  message.stage = step.stage;
  message.stage_started = Clock::now();
  message.started_with = step.stage;
  message.sent_before = sent(message);
  if (step.both) {
    message.task = run_both(message);
  } else if (!pulls_.empty()) {
    message.task = is_pull(step) ? run_pull(message) : run_push(message);
  } else {
    message.task = step.stage == Stage::kReduce ? run_reduce(message) : run_distribute(message);
  }
  active_.push_back(&message);
  message.task.start();
}

RoadMessage Engine::road_message(MessageState& message) {
  return {communicator_,
          scratch_,
          options_.road,
          hosts_,
          message.number,
          message.data,
          MessageState::reached,
          &message,
          library_ ? &*library_ : nullptr};
}

std::vector<RoadMessage> Engine::stretches_of(MessageState& message) {
  std::vector<RoadMessage> stretches;
  stretches.reserve(message.numbers.size());
  std::size_t offset = 0;
  for (const std::uint32_t number : message.numbers) {
    RoadMessage& stretch = stretches.emplace_back(road_message(message));
    stretch.number = number;
    stretch.data = message.data.part(offset, numbers_.bytes()[number]);
    offset += stretch.data.bytes;
  }
  return stretches;
}

Task Engine::on_road(MessageState& message) {
  return match(
      plan_.road,
      [&](const AllReduce& all) { return algorithm(all.algorithm).all_reduce(road_message(message)); },
      [&](const ParameterServer& servers) {
        return push_pull(road_message(message), servers, server_.get());
      });
}

Task Engine::leave_road() {
  return match(
      plan_.road, [](const AllReduce&) { return Task{}; },
      [&](const ParameterServer& servers) { return say_goodbye(communicator_, options_.road, servers); });
}

Task Engine::run_both(MessageState& message) {
  message.times->started = message.stage_started;
  if (message.buffer->fused())
    co_await message.buffer->gather(fusion_, communicator_.operations(), !library_follows_memory());
  message.data = message.buffer->data();
  co_await on_road(message);
  // A rank without a part in the reduce stage (shorter messages than ranks) says nothing of its end.
  if (message.times->reduced < message.times->started) MessageState::reached(&message, Stage::kReduce);
  if (message.buffer->fused()) co_await message.buffer->scatter(fusion_, communicator_.operations());
  step_ended(message);
  hand_back(message);
}

Task Engine::run_reduce(MessageState& message) {
  message.times->started = message.stage_started;
  if (message.buffer->fused())
    co_await message.buffer->gather(fusion_, communicator_.operations(), !library_follows_memory());
  message.data = message.buffer->data();
  co_await algorithm(std::get<AllReduce>(plan_.road).algorithm).reduce(road_message(message));
  message.times->reduced = Clock::now();
  step_order_.reduced(message.number);
  step_ended(message);
}

Task Engine::run_distribute(MessageState& message) {
  message.times->distributing = message.stage_started;
  co_await algorithm(std::get<AllReduce>(plan_.road).algorithm).distribute(road_message(message));
  if (message.buffer->fused()) co_await message.buffer->scatter(fusion_, communicator_.operations());
  step_ended(message);
  hand_back(message);
}

/// A message of a plan with pulls: it has ended when it is pushed.
Task Engine::run_push(MessageState& message) {
  message.times->started = message.stage_started;
  if (message.buffer->fused())
    co_await message.buffer->gather(fusion_, communicator_.operations(), !library_follows_memory());
  message.data = message.buffer->data();
  const auto& servers = std::get<ParameterServer>(plan_.road);
  Group pushes;
  for (const RoadMessage& stretch : stretches_of(message))
    co_await push_stretch(stretch, servers, server_.get(), pushes);
  co_await pushes.empty();
  if (message.buffer->fused()) message.buffer->give_back(fusion_);
  MessageState::reached(&message, Stage::kReduce);
  message.times->distributed = message.times->reduced;
  step_order_.reduced(message.number);
  step_ended(message);
}

Task Engine::run_pull(MessageState& message) {
  MessageTimes& times = *message.times;
  times.queued = times.started = times.reduced = times.distributing = message.stage_started;
  if (message.buffer->fused()) message.buffer->take(fusion_);
  message.data = message.buffer->data();
  const auto& servers = std::get<ParameterServer>(plan_.road);
  Group answers;
  for (const RoadMessage& stretch : stretches_of(message))
    co_await pull_stretch(stretch, servers, server_.get(), answers);
  co_await answers.empty();
  if (message.buffer->fused()) co_await message.buffer->scatter(fusion_, communicator_.operations());
  step_ended(message);
  hand_back(message);
}

void Engine::give_back_credit(MessageState& message) {
  if (!std::exchange(message.credited, false)) return;
  --credited_;
  credited_bytes_ -= message.bytes;
}

void Engine::step_ended(MessageState& message) {
  --under_way_;
  message.sends[static_cast<std::size_t>(message.started_with)] = sent(message) - message.sent_before;
  give_back_credit(message);
}

void Engine::hand_back(MessageState& message) {
  note_counts();
  message.times->distributed = Clock::now();
  if (asks_for_all()) {
    if (all_left_.fetch_sub(1) == 1) all_left_.notify_all();
    return;
  }
  for (const TensorId tensor : message.tensors) {
    if (left_[tensor].fetch_sub(1) == 1) left_[tensor].notify_all();
  }
}

void Engine::note_counts() {
  buffer_bytes_ = scratch_.allocated() + fusion_.allocated();
  copying_ = fusion_.copying();
  sent_ = communicator_.sent() - sent_before_;
  overflows_ = fusion_.overflows().load();
}

void Engine::reap() {
  std::erase_if(active_, [](MessageState* message) {
    if (!message->task.done()) return false;
    message->task.result();
    return true;
  });
}

void Engine::watch(Clock::time_point now) {
  next_watch_ = now + kWatchInterval;
  // The server first: it knows who did not push, where the worker beside it only waits for an answer.
  if (server_) watch_server(now);
  for (const MessageState* message : active_) watch_message(now, *message);
}

void Engine::watch_server(Clock::time_point now) const {
  const auto late = server_->latest();
  if (!late || now - late->since < as_clock(options_.timeout)) return;
  const Peers& peers = communicator_.peers();
  const std::uint32_t number = numbers_.message_of(late->number);
  throw Error(
      ErrorCode::kTimeout,
      fmt::format("{}: as a server, waited {:.1f} s for {} to push message {} ({})",
                  describe(peers, peers.rank), options_.timeout.count(), describe(peers, late->worker),
                  number, tensor_names_[messages_[number]->carried->pieces.front().tensor]));
}

void Engine::watch_message(Clock::time_point now, const MessageState& message) const {
  if (now - message.stage_started < as_clock(options_.timeout)) return;
  const Peers& peers = communicator_.peers();
  std::optional<Pending> pending;
  for (const std::uint32_t number : message.numbers) {
    const auto oldest = communicator_.oldest(number);
    if (oldest && (!pending || oldest->started < pending->started)) pending = oldest;
  }
  throw Error(
      ErrorCode::kTimeout,
      fmt::format("{}: waited {:.1f} s {} in the {} stage of {}", describe(peers, peers.rank),
                  options_.timeout.count(), pending ? "for " + describe(peers, pending->peer) : "for a peer",
                  to_string(message.stage), words_of(message)));
}

}  // namespace commtune
