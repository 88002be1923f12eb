#include "executor/engine/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <climits>
#include <set>
#include <utility>
#include <variant>

#include "executor/engine/link_share.h"
#include "executor/roads/all_reduce/all_reduce.h"
#include "perfmodel/base/error.h"
#include "perfmodel/base/overloaded.h"

namespace commtune {
namespace {

constexpr std::int32_t kFailed = INT_MIN / 2;
/// How often the communication thread looks for what is late.
constexpr std::chrono::milliseconds kWatchInterval{500};

std::vector<std::vector<std::size_t>> layers_of(const Plan& plan, const Profile& profile) {
  const std::vector<TensorRef> tensors = tensors_of(profile);
  std::vector<std::vector<std::size_t>> result;
  for (const Message& message : plan.messages) {
    std::set<std::size_t> layers;
    for (const Piece& piece : message.pieces) layers.insert(tensors[piece.tensor].layer);
    result.emplace_back(layers.begin(), layers.end());
  }
  return result;
}

std::vector<std::size_t> release_layers(const Plan& plan, const Profile& profile) {
  std::vector<std::size_t> result;
  for (const auto& layers : layers_of(plan, profile)) {
    result.push_back(plan.release == Release::kBackward ? 0 : layers.front());
  }
  return result;
}

/// The order in which the plan would have its steps on the wire.
Urgency urgency_of(const Plan& plan) {
  Urgency urgency;
  std::vector<std::uint32_t> order(plan.messages.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  if (plan.order == Order::kPriority) {
    std::sort(order.begin(), order.end(),
              [&](std::uint32_t a, std::uint32_t b) { return plan.priority[a] < plan.priority[b]; });
  }
  urgency.reduce.resize(order.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) urgency.reduce[order[i]] = i;
  urgency.distribute = urgency.reduce;
  for (std::uint32_t i = 0; i < plan.sequence.size(); ++i) {
    const Step& step = plan.sequence[i];
    (step.stage == Stage::kReduce ? urgency.reduce : urgency.distribute)[step.message] = i;
  }
  return urgency;
}

std::size_t largest_message(const Plan& plan) {
  std::size_t largest = 64;
  for (const Message& message : plan.messages) {
    largest = std::max<std::size_t>(largest, message_bytes(message).count);
  }
  return largest;
}

bool is_worker(const Communicator& communicator, const Plan& plan) {
  return communicator.rank() < plan.workers;
}

Clock::duration as_clock(Seconds time) { return std::chrono::duration_cast<Clock::duration>(time); }

std::string to_string(Stage stage) { return stage == Stage::kReduce ? "reduce" : "distribute"; }

}  // namespace

RoadSettings make_settings(const Plan& plan, const Profile& profile, Result result, Bytes chunk) {
  RoadSettings settings;
  settings.workers = plan.workers;
  settings.type = profile.type;
  settings.result = result;
  if (chunk.count != 0) settings.chunk = chunk;
  return settings;
}

struct Engine::MessageState {
  std::uint32_t number = 0;
  std::vector<std::size_t> layers;  // whose gradients it carries
  std::size_t release_layer = 0;
  std::size_t bytes = 0;
  std::optional<MessageBuffer> buffer;  // workers
  std::span<std::byte> data;            // while it is under way
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

Engine::Engine(Communicator& communicator, const Plan& plan, const Profile& profile,
               const Gradients& gradients, const EngineOptions& options)
    : communicator_(communicator),
      plan_(plan),
      options_(options),
      hosts_(communicator.peers(), plan.workers),
      layers_(profile.layers.size()),
      layer_ready_(layers_),
      layer_used_(layers_),
      wakes_(layers_, false),
      layer_left_(layers_, 0),
      left_(layers_),
      times_(plan.messages.size()),
      scratch_(std::min<std::size_t>(options.road.chunk.count, largest_message(plan))),
      step_order_(plan, release_layers(plan, profile), layers_) {
  for (const Layer& layer : profile.layers) {
    for (const Tensor& tensor : layer.tensors) tensor_names_.push_back(tensor.name);
  }
  const auto layers = layers_of(plan, profile);
  const auto released = release_layers(plan, profile);
  std::vector<std::size_t> sizes;
  for (std::size_t i = 0; i < plan.messages.size(); ++i) {
    auto message = std::make_unique<MessageState>();
    message->number = static_cast<std::uint32_t>(i);
    message->layers = layers[i];
    message->release_layer = released[i];
    message->bytes = message_bytes(plan.messages[i]).count;
    message->times = &times_[i];
    message->engine = this;
    if (is_worker(communicator, plan)) message->buffer.emplace(plan.messages[i], gradients);
    for (const std::size_t layer : layers[i]) ++layer_left_[layer];
    wakes_[released[i]] = true;
    sizes.push_back(message->bytes);
    messages_.push_back(std::move(message));
  }
  match(
      plan.road, [](const AllReduce&) {},
      [&](const ParameterServer& servers) { make_server(servers, std::move(sizes)); });
  active_.reserve(plan.messages.size());
  communicator.set_urgency(urgency_of(plan));
  communicator.set_shares(link_shares(plan.road, hosts_, communicator.rank()));
  thread_ = std::thread([this] { communicate(); });
}

Engine::~Engine() {
  if (!thread_.joinable()) return;
  stopping_ = true;
  communicator_.transport().wake();
  thread_.join();
}

void Engine::make_server(const ParameterServer& road, std::vector<std::size_t> message_bytes) {
  if (server_of(road, plan_.workers, communicator_.rank()) < 0) return;
  server_ = std::make_unique<Server>(communicator_, scratch_, options_.road, hosts_, road,
                                     std::move(message_bytes));
  server_->record(options_.served_limit);
}

// ---- The compute side ----

void Engine::begin_iteration() {
  ++iteration_;
  for (std::size_t layer = 0; layer < layers_; ++layer) left_[layer] = layer_left_[layer];
  all_left_ = static_cast<std::int32_t>(messages_.size());
  // fail() sets failed_ first and then the counters: one of the two orders is seen.
  if (failed_) std::rethrow_exception(failure_);
}

void Engine::gradient_ready(std::size_t layer) {
  layer_ready_[layer] = Clock::now();
  if (!wakes_[layer]) return;
  ready_.store(iteration_ * (layers_ + 1) + (layers_ - layer), std::memory_order_release);
  communicator_.transport().wake();
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

bool Engine::is_back(std::size_t layer) const { return left_before(layer) == 0; }

bool Engine::wait_for(std::size_t layer, Clock::time_point asked) {
  layer_used_[layer] = asked;
  return wait_until_none(left_before(layer));
}

void Engine::finish() {
  finishing_ = true;
  communicator_.transport().wake();
  thread_.join();
  if (failed_) std::rethrow_exception(failure_);
}

std::span<const MessageTimes> Engine::times() {
  for (std::size_t i = 0; i < messages_.size(); ++i) {
    times_[i].queued = layer_ready_[messages_[i]->release_layer];
    times_[i].used = layer_used_[messages_[i]->layers.front()];
  }
  return times_;
}

std::vector<Served> Engine::served() const { return server_ ? server_->served() : std::vector<Served>{}; }

std::uint64_t Engine::buffer_bytes() const { return buffer_bytes_; }

std::chrono::nanoseconds Engine::copying() const { return copying_; }

// ---- The communication thread ----

void Engine::communicate() noexcept {
  try {
    run_until_finished();
  } catch (...) {
    failure_ = std::current_exception();
    fail();
  }
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
    take_new_gradients();
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
      if (served && (!goodbye.valid() || goodbye.done())) return;
    }
    communicator_.progress(next_watch_);
  }
}

void Engine::take_new_gradients() {
  const std::uint64_t ready = ready_.load(std::memory_order_acquire);
  const std::uint64_t iteration = ready / (layers_ + 1);
  if (iteration != iteration_seen_) {
    iteration_seen_ = iteration;
    step_order_.begin();
  }
  step_order_.release(ready % (layers_ + 1));
}

void Engine::start_what_may() {
  while (const std::optional<NextStep> step = step_order_.next()) {
    if (!credit_allows()) return;
    step_order_.started();
    start(*step);
  }
}

bool Engine::credit_allows() const {
  if (credited_bytes_ <= plan_.credit.count) return true;
  std::uint64_t left = 0;
  for (const MessageState* message : active_) {
    if (message->credited) left += left_to_send(*message);
  }
  return left <= plan_.credit.count;
}

/// Bytes of its current kind of step that have left, over all iterations.
std::uint64_t Engine::sent(const MessageState& message) const {
  const std::uint64_t pushed = communicator_.sent(TagSpace::kReduce, message.number);
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
  MessageState& message = *messages_[step.message];
  ++under_way_;
  ++credited_;
  credited_bytes_ += message.bytes;
  message.credited = true;
  message.stage = step.stage;
  message.stage_started = Clock::now();
  message.started_with = step.stage;
  message.sent_before = sent(message);
  if (step.both) {
    message.task = run_both(message);
  } else {
    message.task = step.stage == Stage::kReduce ? run_reduce(message) : run_distribute(message);
  }
  active_.push_back(&message);
  message.task.start();
}

RoadMessage Engine::road_message(MessageState& message) {
  return {communicator_,  scratch_,     options_.road,         hosts_,
          message.number, message.data, MessageState::reached, &message};
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
  message.data = message.buffer->gather(fusion_);
  co_await on_road(message);
  // A rank without a part in the reduce stage (shorter messages than ranks) says nothing of its end.
  if (message.times->reduced < message.times->started) MessageState::reached(&message, Stage::kReduce);
  step_ended(message);
  hand_back(message);
}

Task Engine::run_reduce(MessageState& message) {
  message.times->started = message.stage_started;
  message.data = message.buffer->gather(fusion_);
  co_await algorithm(std::get<AllReduce>(plan_.road).algorithm).reduce(road_message(message));
  message.times->reduced = Clock::now();
  step_order_.reduced(message.number);
  step_ended(message);
}

Task Engine::run_distribute(MessageState& message) {
  message.times->distributing = message.stage_started;
  co_await algorithm(std::get<AllReduce>(plan_.road).algorithm).distribute(road_message(message));
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
  message.buffer->scatter(fusion_);
  buffer_bytes_ = scratch_.allocated() + fusion_.allocated();
  copying_ = fusion_.copying();
  message.times->distributed = Clock::now();
  for (const std::size_t layer : message.layers) {
    if (left_[layer].fetch_sub(1) == 1) left_[layer].notify_all();
  }
  if (all_left_.fetch_sub(1) == 1) all_left_.notify_all();
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
  throw Error(
      ErrorCode::kTimeout,
      fmt::format("{}: as a server, waited {:.1f} s for {} to push message {} ({})",
                  describe(peers, peers.rank), options_.timeout.count(), describe(peers, late->worker),
                  late->number, tensor_names_[plan_.messages[late->number].pieces.front().tensor]));
}

void Engine::watch_message(Clock::time_point now, const MessageState& message) const {
  if (now - message.stage_started < as_clock(options_.timeout)) return;
  const Peers& peers = communicator_.peers();
  const auto pending = communicator_.oldest(message.number);
  const auto& pieces = plan_.messages[message.number].pieces;
  std::string tensors = tensor_names_[pieces.front().tensor];
  if (pieces.size() > 1) tensors += fmt::format(" and {} more", pieces.size() - 1);
  throw Error(
      ErrorCode::kTimeout,
      fmt::format("{}: waited {:.1f} s {} in the {} stage of message {} ({})", describe(peers, peers.rank),
                  options_.timeout.count(), pending ? "for " + describe(peers, pending->peer) : "for a peer",
                  to_string(message.stage), message.number, tensors));
}

}  // namespace commtune
