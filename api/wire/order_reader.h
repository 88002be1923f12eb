#pragma once
// What the program that started the job has to say to rank 0, line by line.

#include <functional>
#include <optional>
#include <string>

namespace commtune::api {

/// Lines of a descriptor. One thread.
class OrderReader {
 public:
  /// descriptor      stays open; nobody else reads from it
  /// stop_requested  asked whenever a signal has come, and a few times a second
  OrderReader(int descriptor, std::function<bool()> stop_requested);

  /// Waits for the next line.
  ///
  /// returns  it, without its end; nothing at the end of what there is to read
  /// throws   Error{kInterrupted} when somebody asked to stop
  std::optional<std::string> next();

 private:
  /// False at the end.
  bool read_some();
  std::optional<std::string> take_line();

  const int descriptor_;
  const std::function<bool()> stop_requested_;
  std::string read_;           // and not handed out
  std::size_t looked_at_ = 0;  // of it: no end of line is there
  bool ended_ = false;
};

}  // namespace commtune::api
