#pragma once
// By which tag numbers a plan's messages travel: a message by its own, but where what comes back is cut
// otherwise than what was pushed (Plan::pulls), each stretch that the two have in common by one.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "perfmodel/plan.h"

namespace commtune {

class TagNumbers {
 public:
  explicit TagNumbers(const Plan& plan);

  /// How many there are.
  std::size_t count() const { return bytes_.size(); }
  /// On the wire, by number.
  const std::vector<std::size_t>& bytes() const { return bytes_; }
  /// Of a message, of a pull, in the order in which their bytes lie in its buffer; and whose one is.
  std::span<const std::uint32_t> of_message(std::size_t message) const { return of_message_[message]; }
  std::span<const std::uint32_t> of_pull(std::size_t pull) const { return of_pull_[pull]; }
  std::uint32_t message_of(std::uint32_t number) const { return message_of_[number]; }
  std::uint32_t pull_of(std::uint32_t number) const { return pull_of_[number]; }

  /// With their pieces in the order of their numbers.
  const std::vector<Message>& messages() const { return messages_; }
  const std::vector<Message>& pulls() const { return pulls_; }

 private:
  std::vector<std::size_t> bytes_;
  std::vector<std::vector<std::uint32_t>> of_message_, of_pull_;
  std::vector<std::uint32_t> message_of_, pull_of_;
  std::vector<Message> messages_, pulls_;
};

}  // namespace commtune
