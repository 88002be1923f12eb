#include "store/rows.h"

namespace commtune {

std::string to_string(WorkState state) {
  switch (state) {
    case WorkState::kRunning:
      return "running";
    case WorkState::kComplete:
      return "complete";
    case WorkState::kInterrupted:
      return "interrupted";
    case WorkState::kFailed:
      return "failed";
  }
  return "unknown";
}

}  // namespace commtune
