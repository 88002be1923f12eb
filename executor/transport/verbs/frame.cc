#include "executor/transport/verbs/frame.h"

#include "executor/transport/proof/proof.h"

namespace commtune::verbs {
namespace {

bool is_sent(Tag tag) {
  return static_cast<int>(tag_space_of(tag)) < kTagSpaces && number_of(tag) != kAnyNumber;
}

}  // namespace

std::optional<std::string_view> what_is_wrong(const FrameHeader& header, std::size_t bytes,
                                              std::size_t eager) {
  if (bytes < sizeof header) return "it is shorter than its header";
  const std::size_t rest = bytes - sizeof header;
  switch (header.kind) {
    case FrameKind::kProof:
      if (rest != sizeof(proof::Proof)) return "its proof has another length";
      return std::nullopt;
    case FrameKind::kMessage:
      if (header.envelope.size > eager || header.envelope.size != rest)
        return "its message has another length";
      if (!is_sent(header.envelope.tag)) return "no such tag is sent";
      return std::nullopt;
    case FrameKind::kAnnounce:
      if (rest != 0) return "it has another length";
      if (header.envelope.size <= eager) return "so short a message is not announced";
      if (!is_sent(header.envelope.tag)) return "no such tag is sent";
      return std::nullopt;
    case FrameKind::kLeave:
      if (rest > eager) return "its reason is too long";
      return std::nullopt;
    case FrameKind::kGrant:
    case FrameKind::kCredits:
      if (rest != 0) return "it has another length";
      return std::nullopt;
  }
  return "no such frame is sent";
}

}  // namespace commtune::verbs
