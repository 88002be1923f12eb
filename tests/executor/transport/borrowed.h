#pragma once
// A transport that lends its end to another one without owning it.

#include <optional>
#include <span>
#include <string_view>

#include "executor/transport/transport.h"

namespace commtune::testing {

class Borrowed final : public Transport {
 public:
  explicit Borrowed(Transport& end) : end_(end) {}
  std::string_view name() const override { return end_.name(); }
  const Peers& peers() const override { return end_.peers(); }
  TransferId send(int to, Tag tag, std::span<const std::byte> data) override {
    return end_.send(to, tag, data);
  }
  TransferId receive(int from, Tag tag, std::span<std::byte> data) override {
    return end_.receive(from, tag, data);
  }
  std::span<const Completion> wait(Deadline until) override { return end_.wait(until); }
  void wake() noexcept override { end_.wake(); }
  std::optional<TransferId> library_all_reduce(int ranks, DataType type, std::span<std::byte> data) override {
    return end_.library_all_reduce(ranks, type, data);
  }
  void abort(std::string_view why) noexcept override { end_.abort(why); }

 private:
  Transport& end_;
};

}  // namespace commtune::testing
