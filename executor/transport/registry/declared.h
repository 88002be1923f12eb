#pragma once
// What the folders of the registry's list declare. For the sources of this folder.

#include "executor/transport/transport_kind.h"

// A test registers one more transport by a list of its own.
#ifndef COMMTUNE_TRANSPORT_LIST
#define COMMTUNE_TRANSPORT_LIST "executor/transport/registry/list.inc"
#endif

#define COMMTUNE_TRANSPORT(NAME) COMMTUNE_DECLARE_TRANSPORT(NAME)
#include COMMTUNE_TRANSPORT_LIST
#undef COMMTUNE_TRANSPORT
