/**
 * Preloaded into the program: appends to the file LOADS_TO each file of `src` that is loaded, a path and its bytes a line. With QUICK_MODEL
 * the wait after which the program takes a model for a slow one never ends, so that a busy machine does not look like a slow model.
 */

import { appendFileSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'

const root = join(import.meta.dir, '../..')
const wait = globalThis.setTimeout

Bun.plugin({
  name: 'count-loads',
  setup(build) {
    build.onLoad({ filter: /\/src\/.*\.ts$/ }, ({ path }) => {
      const contents = readFileSync(path, 'utf8')
      appendFileSync(process.env.LOADS_TO ?? '', `${relative(root, path)} ${Buffer.byteLength(contents)}\n`)
      return { contents, loader: 'ts' }
    })
  },
})

if (process.env.QUICK_MODEL)
  globalThis.setTimeout = Object.assign((then: () => void, ms?: number) => (ms === 50 ? wait(() => {}, 2 ** 31 - 1) : wait(then, ms)), wait)
