#pragma once
// What the folders of the registry's list declare. For the sources of this folder.

#include "executor/collectives/library_kind.h"

// A test registers one more library by a list of its own.
#ifndef COMMTUNE_LIBRARY_LIST
#define COMMTUNE_LIBRARY_LIST "executor/collectives/registry/list.inc"
#endif

#define COMMTUNE_LIBRARY(NAME) COMMTUNE_DECLARE_LIBRARY(NAME)
#include COMMTUNE_LIBRARY_LIST
#undef COMMTUNE_LIBRARY
