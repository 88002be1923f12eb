#include "probes/protocol/command.h"

#include <cstring>

#include "perfmodel/base/error.h"

namespace commtune::probes {

std::vector<std::byte> pack(const FollowerReport& report) {
  FollowerReportHead head = report.head;
  head.ends = static_cast<std::int32_t>(report.ends.size());
  const std::size_t tail = report.ends.size() * sizeof(Nanoseconds);
  std::vector<std::byte> bytes(sizeof head + tail);
  std::memcpy(bytes.data(), &head, sizeof head);
  if (tail > 0) std::memcpy(bytes.data() + sizeof head, report.ends.data(), tail);
  return bytes;
}

FollowerReport unpack_report(std::span<const std::byte> bytes) {
  FollowerReport report;
  const auto malformed = [&] {
    return Error(ErrorCode::kConflict,
                 "a report of " + std::to_string(bytes.size()) +
                     " bytes is none of this program's: do all ranks run the same one?");
  };
  if (bytes.size() < sizeof report.head) throw malformed();
  std::memcpy(&report.head, bytes.data(), sizeof report.head);
  const std::size_t tail = bytes.size() - sizeof report.head;
  if (report.head.ends < 0 || tail != static_cast<std::size_t>(report.head.ends) * sizeof(Nanoseconds)) {
    throw malformed();
  }
  report.ends.resize(static_cast<std::size_t>(report.head.ends));
  if (tail > 0) std::memcpy(report.ends.data(), bytes.data() + sizeof report.head, tail);
  return report;
}

}  // namespace commtune::probes
