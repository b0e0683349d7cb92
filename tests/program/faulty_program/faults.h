#pragma once

#include <string>

namespace psgd::test {

/// Where a fault can happen.
enum class Place { load, forward, reduce, test };

/// Does what the environment variable PSGD_FAULT asks for, if it is for this place and worker:
/// "PLACE ACTION WORKER NUMBER", at the NUMBER-th call (from 1) of that place. Several faults stand
/// one after another, with a ';' between.
///   throw      throws std::runtime_error("the fault that was asked for")
///   throw_int  throws what is no std::exception
///   exit       std::exit(0)
///   vanish     _exit(0): no handler runs
///   kill       SIGKILL to itself
///   stall      sleeps for ever
///   freeze     SIGSTOP to itself: no thread of it runs any more
///   stop       SIGUSR1 to itself, the launcher's warning
///   slow       sleeps 150 ms, at this call and all that follow; WORKER -1: on all workers
void act(Place place);

}  // namespace psgd::test
