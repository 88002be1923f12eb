#include "api/rest/events.h"

#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "perfmodel/base/error.h"

namespace commtune::api::rest {
namespace {

constexpr std::size_t kQueue = 256;
constexpr std::size_t kFollowers = 256;
constexpr std::chrono::seconds kAlive{15};

}  // namespace

void Events::publish(std::string_view kind, const nlohmann::json& data) {
  const std::lock_guard lock(shared_->mutex);
  if (shared_->followers.empty()) return;
  const std::string text =
      fmt::format("id: {}\nevent: {}\ndata: {}\n\n", ++shared_->last_id, kind, to_text(data));
  for (auto it = shared_->followers.begin(); it != shared_->followers.end();) {
    if (const auto follower = it->lock()) {
      if (follower->waiting.size() >= kQueue) {
        follower->waiting.pop_front();
        follower->lost = true;
      }
      follower->waiting.push_back(text);
      ++it;
    } else {
      it = shared_->followers.erase(it);
    }
  }
  shared_->happened.notify_all();
}

int Events::followers() const {
  const std::lock_guard lock(shared_->mutex);
  int count = 0;
  for (const auto& follower : shared_->followers) count += follower.expired() ? 0 : 1;
  return count;
}

void Events::stop() {
  const std::lock_guard lock(shared_->mutex);
  shared_->stopping = true;
  shared_->happened.notify_all();
}

Reply Events::follow() {
  auto follower = std::make_shared<Subscriber>();
  {
    const std::lock_guard lock(shared_->mutex);
    std::erase_if(shared_->followers, [](const auto& other) { return other.expired(); });
    if (shared_->followers.size() >= kFollowers)
      throw Error(ErrorCode::kUnavailable,
                  fmt::format("{} clients follow events already; poll the lists instead", kFollowers));
    follower->waiting.emplace_back("retry: 2000\n\n");
    shared_->followers.push_back(follower);
  }
  Reply reply;
  reply.type = "text/event-stream";
  reply.headers.emplace_back("X-Accel-Buffering", "no");
  reply.stream = [shared = shared_, follower](const Sink& sink) {
    std::string text;
    {
      std::unique_lock lock(shared->mutex);
      shared->happened.wait_for(lock, kAlive, [&] { return !follower->waiting.empty() || shared->stopping; });
      if (shared->stopping) return false;
      if (follower->lost) text = ": some events were lost; read the lists again\n\n";
      follower->lost = false;
      for (; !follower->waiting.empty(); follower->waiting.pop_front()) text += follower->waiting.front();
    }
    return sink(text.empty() ? ": alive\n\n" : text);
  };
  return reply;
}

}  // namespace commtune::api::rest
