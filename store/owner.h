#pragma once
// Who works on something that the store has as running: a process, so that it can be told later whether it is
// still there.

#include <string>
#include <string_view>

namespace commtune {

/// This process: "alpha pid 12 started 4711 boot 0a1b2c3d". The start is in clock ticks since the boot, so
/// that neither a number that is used again nor a restarted machine is taken for it.
std::string this_process();

/// True when the owner was a process of this machine and is no more. False for one of another machine, and
/// for a text that this_process() did not write (the last two words may be missing, as in older files).
bool is_gone(std::string_view owner);

}  // namespace commtune
