#pragma once
// Who follows what happens: each follower has a short queue, and one that does not keep up loses the oldest.

#include <condition_variable>
#include <deque>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "api/rest/http/message.h"

namespace commtune::api::rest {

class Events {
 public:
  /// kind  "job", "plan", "run", "fit"
  void publish(std::string_view kind, const nlohmann::json& data);

  /// A stream of server-sent events. Throws Error{kUnavailable} when there are too many already.
  Reply follow();
  int followers() const;
  void stop();

 private:
  struct Subscriber {
    std::deque<std::string> waiting;
    bool lost = false;
  };
  struct Shared {
    std::mutex mutex;  // guards all below
    std::condition_variable happened;
    std::list<std::weak_ptr<Subscriber>> followers;
    std::uint64_t last_id = 0;
    bool stopping = false;
  };
  // Shared with the streams, whose connections may end after us.
  const std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
};

}  // namespace commtune::api::rest
