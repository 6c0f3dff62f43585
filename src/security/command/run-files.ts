/** Computes digests of the files that a call would overwrite or run, so that an approval covers exactly their present content. */

import type { JsonObject } from '../../kit/json.ts'
import { sha256 } from '../../kit/sha256.ts'
import { resolvePath } from './flow/model.ts'

type ReadBytes = (
  path: string,
  options: { readonly maxBytes: number },
) => { readonly ok: true; readonly bytes: Uint8Array } | { readonly ok: false; readonly message: string }

const maxFiles = 64
const maxBytes = 16 * 1024 * 1024

/** Returns for each path the digest of its present content, or `none` when it cannot be read. */
export function digestsOf(paths: readonly string[], readBytes: ReadBytes): JsonObject {
  return Object.fromEntries(
    paths.map((path) => {
      const read = readBytes(path, { maxBytes })
      return [path, read.ok ? sha256(read.bytes) : 'none']
    }),
  )
}

/** Follows `include` lines of makefiles that name their files; a name with variables or patterns cannot be followed. */
export function digestsOfRun(runs: readonly string[], readBytes: ReadBytes): JsonObject {
  const files = new Set(runs)
  const [first = ''] = runs
  const folder = first.slice(0, first.lastIndexOf('/'))
  const digests: { [path: string]: string } = {}
  for (const path of files) {
    if (files.size > maxFiles) break
    const read = readBytes(path, { maxBytes })
    digests[`runs ${path}`] = read.ok ? sha256(read.bytes) : 'none'
    if (read.ok && /(^|\/)(GNU)?makefile$|\.mk$/i.test(path)) for (const name of included(read.bytes)) files.add(resolvePath(name, folder))
  }
  return digests
}

function included(bytes: Uint8Array): string[] {
  const lines = new TextDecoder().decode(bytes).matchAll(/^[ -]*s?include[ \t]+([^\n#]+)/gm)
  return [...lines].flatMap(([, names = '']) => names.trim().split(/\s+/)).filter((name) => /^[\w./@+-]+$/.test(name))
}
