#include "executor/engine/tag_numbers.h"

#include "perfmodel/common_parts.h"

namespace commtune {

namespace {

/// By its parts, which lie side by side in it.
std::vector<Message> joined(const std::vector<CommonPart>& parts,
                            const std::vector<std::vector<std::uint32_t>>& of) {
  std::vector<Message> messages(of.size());
  for (std::size_t i = 0; i < of.size(); ++i) {
    for (const std::uint32_t part : of[i]) {
      const std::vector<Piece>& pieces = parts[part].pieces.pieces;
      messages[i].pieces.insert(messages[i].pieces.end(), pieces.begin(), pieces.end());
    }
  }
  return messages;
}

}  // namespace

TagNumbers::TagNumbers(const Plan& plan) {
  if (plan.pulls.empty()) {
    messages_ = plan.messages;
    for (std::uint32_t message = 0; message < messages_.size(); ++message) {
      bytes_.push_back(wire_bytes(plan, messages_[message]).count);
      of_message_.push_back({message});
      message_of_.push_back(message);
    }
    return;
  }
  CommonParts common = common_parts(plan);
  messages_ = joined(common.parts, common.of_message);
  pulls_ = joined(common.parts, common.of_pull);
  for (const CommonPart& part : common.parts) {
    bytes_.push_back(wire_bytes(plan, part.pieces).count);
    message_of_.push_back(part.message);
    pull_of_.push_back(part.pull);
  }
  of_message_ = std::move(common.of_message);
  of_pull_ = std::move(common.of_pull);
}

}  // namespace commtune
