#pragma once
// What the service says on standard error: one line an event, text or JSON. Never a body, a token or a query.

#include <functional>
#include <initializer_list>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace commtune::api::rest {

enum class Level { kInfo, kWarning, kError };

class Log {
 public:
  using Value = std::variant<std::string, double, std::int64_t>;
  using Fields = std::initializer_list<std::pair<std::string_view, Value>>;

  /// write  gets whole lines; one at a time
  Log(bool json, std::function<void(std::string_view)> write) : json_(json), write_(std::move(write)) {}

  void say(Level level, std::string_view event, Fields fields = {});

 private:
  const bool json_;
  std::mutex mutex_;  // one line at a time
  const std::function<void(std::string_view)> write_;
};

}  // namespace commtune::api::rest
