#include "executor/session/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <thread>
#include <utility>

#include "executor/engine/message_limits.h"
#include "executor/memory/host_memory.h"

namespace commtune {
namespace {

/// Plans that ranks keep: so many may take turns without being told again.
constexpr std::size_t kKnownPlans = 32;

/// Iterations from an announcement to the one before which its plan is adopted. Rank 0 does the last one
/// before that when all have answered, so with two it would wait for them at once; with three they have an
/// iteration for it.
constexpr std::uint64_t kLead = 3;

/// Between tensors where ranks list them: no name has it.
constexpr char kSeparator = '\0';

void check_gradients(const TensorLayout& layout, const Gradients& gradients, bool trains) {
  if (!trains) return;
  if (gradients.size() != layout.tensors.size()) {
    throw Error(ErrorCode::kBadInput, fmt::format("gradients = {}: must be one per tensor of the layout, {}",
                                                  gradients.size(), layout.tensors.size()));
  }
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const Tensor& tensor = layout.tensors[i];
    if (gradients[i].bytes == tensor.bytes.count) continue;
    throw Error(ErrorCode::kBadInput, fmt::format("gradient {} has {} B: must have {}", tensor.name,
                                                  gradients[i].bytes, tensor.bytes.count));
  }
}

}  // namespace

Session::Session(Transport& transport, TensorLayout layout, Gradients gradients, SessionOptions options)
    : communicator_(transport, options.memory != nullptr ? *options.memory : host_memory()),
      layout_(std::move(layout)),
      gradients_(std::move(gradients)),
      options_(std::move(options)) {
  check_gradients(layout_, gradients_, trains());
  if (options_.announced_plans && trains())
    notice_ = std::make_unique<AdoptionNotice>(communicator_, options_.workers);
  agree(communicator_, facts(), deadline());
  agree_on_layout();
}

Session::~Session() = default;

std::vector<Fact> Session::facts() {
  std::vector<Fact> facts = {{"number of ranks", std::to_string(communicator_.size())},
                             {"transport", std::string(communicator_.transport().name())},
                             {"number of workers", std::to_string(options_.workers)},
                             {"tensor type", to_string(layout_.type)},
                             {"number of tensors", std::to_string(layout_.tensors.size())},
                             {"size of all gradients", std::to_string(layout_.bytes().count) + " B"},
                             {"result", options_.result == Result::kMean ? "mean" : "sum"},
                             {"chunk size", std::to_string(options_.chunk.count) + " B"},
                             {"plans", options_.announced_plans ? "may be announced" : "known beforehand"}};
  facts.insert(facts.end(), options_.facts.begin(), options_.facts.end());
  return facts;
}

void Session::agree_on_layout() {
  const std::vector<std::string> digests = all_gather(communicator_, digest(layout_), deadline());
  if (!disagreement(peers(), "layout", digests)) return;
  // All ranks have seen it: now they tell each other what they have.
  std::string own;
  for (const Tensor& tensor : layout_.tensors)
    own += fmt::format("{} of {} B{}", tensor.name, tensor.bytes.count, kSeparator);
  std::vector<std::string> left = all_gather(communicator_, own, deadline());
  for (std::size_t i = 0; i < layout_.tensors.size(); ++i) {
    std::vector<std::string> values;
    for (std::string& text : left) {
      const std::size_t end = text.find(kSeparator);
      values.push_back(end == std::string::npos ? "none" : text.substr(0, end));
      text.erase(0, end == std::string::npos ? end : end + 1);
    }
    if (const auto text = disagreement(peers(), fmt::format("tensor number {}", i), values))
      throw Error(ErrorCode::kConflict, *text);
  }
  throw Error(ErrorCode::kConflict, *disagreement(peers(), "layout", digests));
}

Deadline Session::deadline() const {
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(options_.timeout);
}

Deadline Session::patience() const { return trains() ? deadline() : Deadline::max(); }

void Session::refuse_without_plan() const {
  throw Error(ErrorCode::kBadInput,
              fmt::format("{}: no plan is in force here: adopt one first", describe(peers(), rank())));
}

const Plan* Session::known(const std::string& digest) const {
  const auto found = std::ranges::find(known_, digest, &std::pair<std::string, Plan>::first);
  return found == known_.end() ? nullptr : &found->second;
}

void Session::remember(const Plan& plan) {
  const std::string name = digest(plan);
  std::erase_if(known_, [&](const auto& each) { return each.first == name; });
  known_.emplace_back(name, plan);
  if (known_.size() > kKnownPlans) known_.pop_front();
}

void Session::check_plan(const Plan& plan) const {
  check(plan, layout_);
  if (plan.workers != options_.workers) {
    throw Error(ErrorCode::kBadInput, fmt::format("the plan is for {} workers: the session has {}",
                                                  plan.workers, options_.workers));
  }
  if (ranks_of(plan) > communicator_.size()) {
    throw Error(
        ErrorCode::kBadInput,
        fmt::format("ranks = {}: the plan needs {}, {} workers and {} dedicated servers",
                    communicator_.size(), ranks_of(plan), plan.workers, ranks_of(plan) - plan.workers));
  }
  if (options_.accept) options_.accept(plan);
}

std::optional<Plan> Session::judged(const Announcement& announcement, const std::optional<Plan>& own,
                                    AdoptionAnswer& answer) {
  if (own) answer.digest = digest(*own);
  if (rank() == 0) answer.digest = announcement.digest;
  if (trains()) answer.iteration = iteration_ + 1;
  std::optional<Plan> plan = announcement.plan;
  if (own && answer.digest == announcement.digest) plan = own;
  if (const Plan* const before = known(announcement.digest); !plan && before != nullptr) plan = *before;
  if (!plan && announcement.unreadable) {
    answer.refusal = announcement.unreadable;
    return std::nullopt;
  }
  try {
    if (!plan || digest(*plan) != announcement.digest) {
      throw Error(ErrorCode::kConflict,
                  fmt::format("the plan with digest {} did not reach this rank", announcement.digest));
    }
    check_plan(*plan);
  } catch (const Error& error) {
    answer.refusal = Refusal{error.code(), error.what()};
    return std::nullopt;
  }
  return plan;
}

bool Session::adopt(const std::optional<Plan>& plan) {
  std::optional<Plan> before = plan_;
  if (plan_) end_plan();
  Announcement announcement;
  if (rank() == 0 && plan) {
    announcement.digest = digest(*plan);
    // Of the same digest, another pace is to be told.
    if (const Plan* told = known(announcement.digest); told == nullptr || *told != *plan)
      announcement.plan = plan;
  }
  announcement = commtune::announce(communicator_, announcement, patience());
  if (announcement.digest.empty()) {
    if (!plan || rank() == 0) return false;
    throw Error(ErrorCode::kConflict, fmt::format("{} has left the session, this rank was to adopt plan {}",
                                                  describe(peers(), 0), digest(*plan)));
  }
  AdoptionAnswer answer;
  std::optional<Plan> next = judged(announcement, plan, answer);
  if (next) allow(*next);
  const std::optional<Refusal> refusal = judge(communicator_, answer, deadline());
  if (refusal && before) start(std::move(*before));
  if (refusal) throw PlanRefused(refusal->code, refusal->text);
  try {
    library_.join(communicator_, *next, deadline());
  } catch (const Error& error) {
    // The same on every rank.
    if (error.code() != ErrorCode::kUnavailable) throw;
    if (before) start(std::move(*before));
    throw PlanRefused(error.code(), error.what());
  }
  remember(*next);
  if (notice_) notice_->begin();
  start(std::move(*next));
  return true;
}

TransferTraits Session::traits() const {
  return with_chunk(communicator_.transport().traits(), options_.chunk);
}

void Session::allow(const Plan& plan) {
  const RoadSettings settings = make_settings(plan, layout_.type, options_.result, traits());
  const MessageLimits needed = message_limits(plan, layout_, settings);
  limits_.longest = std::max(limits_.longest, needed.longest);
  limits_.early = std::max(limits_.early, needed.early);
  communicator_.transport().limit_messages(limits_);
}

void Session::start(Plan plan) {
  plan_ = std::move(plan);
  settings_ = make_settings(*plan_, layout_.type, options_.result, traits());
  if (rank() >= ranks_of(*plan_)) return;
  if (options_.at_the_plans_pace) communicator_.transport().set_pace(plan_->pace);
  engine_ = std::make_unique<Engine>(
      communicator_, *plan_, layout_, gradients_,
      EngineOptions{settings_, options_.timeout, served_iterations_ * plan_->messages.size(), library_.get(),
                    options_.own_barrier});
}

bool Session::begin_iteration() {
  const std::uint64_t next = iteration_ + 1;
  const std::uint64_t due = notice_ ? notice_->first() : 0;
  const bool changed = due == next && adopt_announced();
  // The others cannot end this one before it has begun here.
  if (due == next + 1 && rank() == 0) {
    notice_->wait_until_known([this] { engine().rethrow_failure(); }, deadline());
  }
  engine().begin_iteration();
  iteration_ = next;
  return changed;
}

std::uint64_t Session::announce(Plan plan) {
  const auto refuse = [&](std::string_view rule) {
    throw Error(ErrorCode::kBadInput, fmt::format("announce on {}: {}", describe(peers(), rank()), rule));
  };
  if (rank() != 0) refuse("only rank 0 may announce a plan");
  if (!notice_) refuse("must be said beforehand, by SessionOptions::announced_plans");
  if (!plan_) refuse("no plan is in force: adopt one first");
  if (const std::uint64_t due = notice_->first(); due != 0)
    refuse(fmt::format("a plan is announced already, for iteration {}", due));
  try {
    check_plan(plan);
  } catch (const Error& error) {
    throw PlanRefused(error.code(), error.what());
  }
  announced_ = std::move(plan);
  const std::uint64_t first = iteration_ + kLead;
  notice_->tell(first);
  return first;
}

bool Session::adopt_announced() {
  notice_->clear();
  refusal_.reset();
  try {
    return adopt(std::exchange(announced_, std::nullopt));
  } catch (const PlanRefused& refused) {
    refusal_ = Refusal{refused.code(), refused.what()};
    return false;
  }
}

PlanEnd Session::end_plan() {
  if (!plan_) refuse_without_plan();
  PlanEnd end;
  if (engine_) {
    engine_->finish();
    end = {engine_->served(), engine_->buffer_bytes()};
  }
  engine_.reset();
  plan_.reset();
  return end;
}

void Session::serve() {
  for (;;) {
    try {
      if (!adopt(std::nullopt)) break;
    } catch (const PlanRefused&) {
      // Whoever asked for the plan hears of it; here the one before goes on.
    }
  }
  barrier(communicator_, deadline());
}

void Session::leave() {
  if (adopt(std::nullopt)) {
    throw Error(ErrorCode::kConflict,
                fmt::format("{} goes on with plan {}, this rank was to leave the session",
                            describe(peers(), 0), digest(*plan_)));
  }
  if (notice_) notice_->end(deadline());
  barrier(communicator_, deadline());
}

void Session::look_for_lost(Seconds within) {
  constexpr std::chrono::milliseconds kLook{10};
  const Deadline until = Clock::now() + std::chrono::duration_cast<Clock::duration>(within);
  if (!engine_) {
    while (Clock::now() < until) {
      communicator_.progress(std::min(until, Clock::now() + kLook));
      communicator_.transport().check_peers();
    }
    return;
  }
  engine_->watch_peers(true);
  while (Clock::now() < until) {
    engine_->rethrow_failure();
    std::this_thread::sleep_for(kLook);
  }
  engine_->watch_peers(false);
}

void Session::abort(std::string_view why) noexcept {
  engine_.reset();
  library_.reset();
  communicator_.transport().abort(why);
}

}  // namespace commtune
