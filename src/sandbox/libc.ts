/** Calls the few system functions that the runtime does not offer, through the C library that is loaded anyway. */

import { dlopen } from 'bun:ffi'
import { withLibc } from '../kit/proc.ts'

export type Libc = ReturnType<typeof openLibc>

/** @throws when neither glibc nor musl is found. It takes half a millisecond: open it once. */
export function openLibc() {
  return withLibc(load)
}

function load(name: string) {
  const { symbols } = dlopen(name, {
    flock: { args: ['i32', 'i32'], returns: 'i32' },
    getsockopt: { args: ['i32', 'i32', 'i32', 'ptr', 'ptr'], returns: 'i32' },
    prlimit: { args: ['i32', 'i32', 'ptr', 'ptr'], returns: 'i32' },
    prctl: { args: ['i32', 'u64', 'u64', 'u64', 'u64'], returns: 'i32' },
    syscall: { args: ['i64', 'i64', 'i64', 'i64', 'i64', 'i64'], returns: 'i64' },
    pipe2: { args: ['ptr', 'i32'], returns: 'i32' },
    signal: { args: ['i32', 'u64'], returns: 'u64' },
    execve: { args: ['ptr', 'ptr', 'ptr'], returns: 'i32' },
    lgetxattr: { args: ['ptr', 'ptr', 'ptr', 'u64'], returns: 'i64' },
    llistxattr: { args: ['ptr', 'ptr', 'u64'], returns: 'i64' },
    lremovexattr: { args: ['ptr', 'ptr'], returns: 'i32' },
  })
  return symbols
}
