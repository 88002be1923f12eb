#include "api/c/training_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "executor/memory/cuda/gpu_memory.h"
#include "executor/transport/registry/make_transport.h"
#include "perfmodel/base/error.h"

namespace commtune::api {

TrainingSession::TrainingSession(std::shared_ptr<Bootstrap> bootstrap, TrainingOptions options)
    : options_(std::move(options)) {
  const int ranks = bootstrap->peers().size();
  if (options_.session.workers == 0) options_.session.workers = ranks;
  if (options_.session.workers < 1 || options_.session.workers > ranks) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("workers = {}: must be 1 to the number of ranks, {}; 0 means all",
                            options_.session.workers, ranks));
  }
  const Deadline until = Clock::now() + std::chrono::duration_cast<Clock::duration>(options_.session.timeout);
  options_.session.accept = [transport = options_.transport](const Plan& plan) {
    if (plan.transport.empty() || plan.transport == transport) return;
    throw Error(ErrorCode::kConflict,
                fmt::format("the plan is for transport {}: this session was joined over {}", plan.transport,
                            transport));
  };
  transport_ = make_transport(options_.transport, std::move(bootstrap), options_.network, until);
}

TrainingSession::~TrainingSession() {
  if (!over_ || told_) return;
  const std::scoped_lock lock(mutex_);
  abort(failure_->what());
}

Buffer TrainingSession::allocate(std::size_t bytes) {
  if (gpu_memory_) return on_gpu_.emplace(*gpu_memory_, bytes, nullptr).buffer();
  memory_ = std::make_unique<std::byte[]>(bytes);
  return {memory_.get(), bytes};
}

void TrainingSession::set_layout(TensorLayout layout, std::span<void* const> memory, std::optional<int> gpu) {
  refuse_when_over();
  if (session_) throw BadCall("the session has a layout already");
  const auto empty = std::ranges::find(memory, nullptr);
  if (empty != memory.end()) {
    const auto tensor = static_cast<std::size_t>(empty - memory.begin());
    throw BadCall(
        fmt::format("memory[{}] is NULL: must be where {} lies", tensor, layout.tensors[tensor].name));
  }
  if (transport_->peers().rank < workers()) {
    try {
      if (gpu) {
        gpu_memory_ = make_gpu_memory(*gpu);
        notices_ = make_stream_notices(*gpu);
        options_.session.memory = gpu_memory_.get();
      }
      gradients_ = gradients_in(layout, memory);
    } catch (const Error& error) {
      end_by(error);  // the other ranks wait for this one
    }
  }
  layout_digest_ = digest(layout);
  try {
    session_ = std::make_unique<Session>(*transport_, std::move(layout), gradients_, options_.session);
  } catch (const Error& error) {
    end_by(error);
  }
}

Gradients TrainingSession::gradients_in(const TensorLayout& layout, std::span<void* const> memory) {
  const Device device = gpu_memory_ ? gpu_memory_->device() : Device::kHost;
  const Buffer whole = memory.empty() ? allocate(layout.bytes().count) : Buffer();
  Gradients gradients(layout.tensors.size());
  std::size_t place = 0;
  for (std::size_t i = layout.tensors.size(); i-- > 0;) {
    const std::size_t bytes = layout.tensors[i].bytes.count;
    gradients[i] =
        memory.empty() ? whole.part(place, bytes) : Buffer(static_cast<std::byte*>(memory[i]), bytes, device);
    place += bytes;
  }
  return gradients;
}

void* TrainingSession::gradient(std::size_t tensor) const {
  return tensor < gradients_.size() ? gradients_[tensor].address : nullptr;
}

const TensorLayout& TrainingSession::layout() const {
  if (!session_) throw BadCall("the session has no layout yet: commtune_layout() comes first");
  return session_->layout();
}

Session& TrainingSession::session() {
  refuse_when_over();
  if (!session_) throw BadCall("the session has no layout yet: commtune_layout() comes first");
  return *session_;
}

TensorId TrainingSession::checked(std::size_t tensor) const {
  const std::size_t count = layout().tensors.size();
  if (tensor >= count) throw BadCall(fmt::format("tensor = {}: must be less than {}", tensor, count));
  return static_cast<TensorId>(tensor);
}

void TrainingSession::refuse_when_over() const {
  if (!over_) return;
  const std::scoped_lock lock(mutex_);
  throw Error(*failure_);
}

void TrainingSession::remember(const Error& error) {
  {
    const std::scoped_lock lock(mutex_);
    if (!failure_) failure_ = error;
  }
  over_ = true;
}

void TrainingSession::end_by(const Error& error) {
  remember(error);
  throw;  // NOLINT(bugprone-exception-escape): called by handlers alone
}

void TrainingSession::carry_out(const std::function<void(Session&)>& call) {
  if (notices_) notices_->settle();  // not while a thread of theirs is in the session
  Session& session = this->session();
  try {
    call(session);
  } catch (const PlanRefused&) {
    throw;
  } catch (const Error& error) {
    end_by(error);
  }
}

void TrainingSession::adopt(const std::optional<Plan>& plan) {
  if (!plan && session().rank() == 0) throw BadCall("plan is NULL: rank 0 says which plan all adopt");
  carry_out([&](Session& session) {
    if (!session.adopt(plan))
      throw Error(ErrorCode::kConflict, "rank 0 has left the session, this rank was to adopt a plan");
    plan_digest_ = digest(*session.plan());
  });
}

std::uint64_t TrainingSession::announce(const Plan& plan) {
  Session& session = this->session();
  try {
    return session.announce(plan);
  } catch (const PlanRefused&) {
    throw;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kBadInput) end_by(error);
    throw BadCall(error.what());  // nothing was announced
  }
}

std::string TrainingSession::refusal() const {
  return session_ && session_->refusal() ? session_->refusal()->text : std::string();
}

void TrainingSession::begin() {
  if (plan_digest_.empty()) throw BadCall("no plan is in force: commtune_adopt() comes first");
  carry_out([&](Session& session) {
    if (session.begin_iteration()) plan_digest_ = digest(*session.plan());
  });
  begun_ = Clock::now();
}

void TrainingSession::ready(std::size_t tensor) {
  Session& session = this->session();
  const TensorId id = checked(tensor);
  if (session.iteration() == 0) throw BadCall("no iteration has begun: commtune_begin() comes first");
  try {
    session.ready(id);
  } catch (const Error& error) {
    end_by(error);
  }
}

void TrainingSession::ready_after(std::size_t tensor, void* stream) {
  Session& session = this->session();
  const TensorId id = checked(tensor);
  if (!notices_)
    throw BadCall(
        "gradients lie in the host's memory, which no stream writes: commtune_ready() tells of them");
  if (session.iteration() == 0) throw BadCall("no iteration has begun: commtune_begin() comes first");
  const auto ended = [this, &session, id] {
    try {
      session.ready(id);
    } catch (const Error& error) {
      remember(error);
    }
  };
  try {
    notices_->after(stream, ended);
  } catch (const Error& error) {
    throw BadCall(fmt::format("stream: {}", error.what()));
  }
}

bool TrainingSession::is_back(std::size_t tensor) {
  const TensorId id = checked(tensor);
  return session().plan() != nullptr && session().is_back(id);
}

void TrainingSession::are_back(std::span<unsigned char> back) {
  Session& session = this->session();
  const std::size_t count = layout().tensors.size();
  if (back.size() != count) throw BadCall(fmt::format("tensors = {}: must be {}", back.size(), count));
  const bool planned = session.plan() != nullptr;
  for (std::size_t tensor = 0; tensor < count; ++tensor) {
    back[tensor] = planned && session.is_back(static_cast<TensorId>(tensor)) ? 1 : 0;
  }
}

void TrainingSession::wait_for(TensorRange tensors) {
  Session& session = this->session();
  if (session.iteration() == 0) throw BadCall("no iteration has begun: commtune_begin() comes first");
  const Clock::time_point asked = Clock::now();
  try {
    if (session.wait(tensors, asked)) waited_ += std::chrono::nanoseconds(Clock::now() - asked).count();
  } catch (const Error& error) {
    end_by(error);
  }
}

void TrainingSession::wait(std::size_t tensor) {
  const TensorId id = checked(tensor);
  wait_for({id, id + 1});
}

void TrainingSession::wait_all() { wait_for({0, static_cast<TensorId>(layout().tensors.size())}); }

void TrainingSession::serve() {
  if (session().trains()) throw BadCall("this rank trains: a dedicated server alone serves");
  carry_out([&](Session& session) { session.serve(); });
  told_ = true;
}

void TrainingSession::leave() {
  carry_out([&](Session& session) { session.leave(); });
  plan_digest_.clear();
  told_ = true;
}

void TrainingSession::look_for_lost(Seconds within) {
  carry_out([&](Session& session) { session.look_for_lost(within); });
}

void TrainingSession::abort(const std::string& why) noexcept {
  if (told_) return;
  told_ = true;
  if (session_) {
    session_->abort(why);
  } else {
    transport_->abort(why);
  }
}

std::span<const MessageTimes> TrainingSession::message_times() {
  if (plan_digest_.empty() || session().iteration() == 0) return {};
  return session().times();
}

std::size_t TrainingSession::messages() const {
  return session_ && session_->plan() != nullptr ? session_->plan()->messages.size() : 0;
}

Seconds TrainingSession::copied() {
  return plan_digest_.empty() ? Seconds{0} : Seconds{session().counts().copying};
}

}  // namespace commtune::api
