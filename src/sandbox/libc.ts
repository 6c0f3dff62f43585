/** Calls the few system functions that the runtime does not offer, through the C library that is loaded anyway. */

import { dlopen } from 'bun:ffi'

export type Libc = ReturnType<typeof openLibc>

/** @throws when neither glibc nor musl is found. It takes half a millisecond: open it once. */
export function openLibc() {
  const names = ['libc.so.6', `libc.musl-${process.arch === 'arm64' ? 'aarch64' : 'x86_64'}.so.1`]
  for (const name of names) {
    try {
      return load(name)
    } catch (error) {
      if (name === names.at(-1)) throw error
    }
  }
  throw new Error('no C library')
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
