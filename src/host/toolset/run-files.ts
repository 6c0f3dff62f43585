/** Computes digests of the files that a command would run, so that an approval covers exactly their present content. */

import { dirname, resolve } from 'node:path'
import type { JsonObject } from '../../kit/json.ts'
import { sha256 } from '../../kit/sha256.ts'

type ReadBytes = (
  path: string,
  options: { readonly maxBytes: number },
) => { readonly ok: true; readonly bytes: Uint8Array } | { readonly ok: false; readonly message: string }

const maxFiles = 64
const maxBytes = 16 * 1024 * 1024

/** Follows `include` lines of makefiles that name their files; a name with variables or patterns cannot be followed. */
export function digestsOfRun(runs: readonly string[], readBytes: ReadBytes): JsonObject {
  const files = new Set(runs)
  const digests: { [path: string]: string } = {}
  for (const path of files) {
    if (files.size > maxFiles) break
    const read = readBytes(path, { maxBytes })
    digests[`runs ${path}`] = read.ok ? sha256(read.bytes) : 'none'
    if (read.ok && /(^|\/)(GNU)?makefile$|\.mk$/i.test(path))
      for (const name of included(read.bytes)) files.add(resolve(dirname(runs[0] ?? path), name))
  }
  return digests
}

function included(bytes: Uint8Array): string[] {
  const lines = new TextDecoder().decode(bytes).matchAll(/^[ -]*s?include[ \t]+([^\n#]+)/gm)
  return [...lines].flatMap(([, names = '']) => names.trim().split(/\s+/)).filter((name) => /^[\w./@+-]+$/.test(name))
}
