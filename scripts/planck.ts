#!/usr/bin/env bun
/**
 * Bundles the pure router as one small file for Bun and Node, dist/planck.js: `bun scripts/planck.ts`. It fails when the file exceeds its
 * size limit.
 */

import { chmodSync, mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** The size limit of the smallest agent, in bytes. */
export const PLANCK_BYTES = 8192

const root = join(import.meta.dir, '..')
/** The second line tells Bun that the file needs no transpilation; Node reads it as a comment. */
const BANNER = '#!/usr/bin/env node\n// @bun'

if (import.meta.main) process.exit(await main())

async function main(): Promise<number> {
  const bytes = await bundlePlanck(join(root, 'dist', 'planck.js'))
  console.log(`dist/planck.js  ${bytes} bytes of ${PLANCK_BYTES}`)
  return bytes <= PLANCK_BYTES ? 0 : 1
}

/** Writes an ES module without dependencies and makes it executable. @returns its size. @throws AggregateError when the build fails */
export async function bundlePlanck(outfile: string): Promise<number> {
  mkdirSync(dirname(outfile), { recursive: true })
  await Bun.write(outfile, withOneImport(await bundle(join(root, 'src', 'planck.ts'), false)))
  const bytes = await Bun.write(outfile, `${BANNER}\n${(await bundle(outfile, true)).trimEnd()}\n`)
  chmodSync(outfile, 0o755)
  return bytes
}

async function bundle(entry: string, minify: boolean): Promise<string> {
  const built = await Bun.build({ entrypoints: [entry], target: 'node', minify })
  const [file] = built.outputs
  if (file === undefined) throw new Error('the bundler made nothing')
  return file.text()
}

/** The bundler keeps one import per file, and numbers a name that several import: this imports each name of the file system once. */
function withOneImport(code: string): string {
  const pattern = /^import \{([^}]*)\} from "node:fs";$/gm
  const imported = Array.from(code.matchAll(pattern), ([, list = '']) => list.split(',').map((each) => each.trim().split(' as '))).flat()
  const names = [...new Set(imported.map(([name]) => name))].join()
  const rest = imported.reduce((text, [name = '', alias]) => (alias ? text.replace(RegExp(`\\b${alias}\\b`, 'g'), name) : text), code)
  return `import{${names}}from"node:fs";${rest.replace(pattern, '')}`
}
