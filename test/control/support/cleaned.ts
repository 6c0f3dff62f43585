/** Cleans up after each test of a file or a `describe`. */

import { afterEach } from 'bun:test'

/** Runs what is pushed after each test, last first. */
export function cleaned(): (() => unknown)[] {
  const cleanups: (() => unknown)[] = []
  afterEach(async () => {
    for (const clean of cleanups.splice(0).reverse()) await clean()
  })
  return cleanups
}
