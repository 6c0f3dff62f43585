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
  const built = await Bun.build({ entrypoints: [join(root, 'src', 'planck.ts')], target: 'node', minify: true })
  const [file] = built.outputs
  if (file === undefined) throw new Error('the bundler made nothing')
  mkdirSync(dirname(outfile), { recursive: true })
  const bytes = await Bun.write(outfile, `${BANNER}\n${withOneImport((await file.text()).trimEnd())}\n`)
  chmodSync(outfile, 0o755)
  return bytes
}

/** The bundler keeps one import per file: this merges those of the file system into the first. */
function withOneImport(code: string): string {
  const pattern = /import\{([^}]*)\}from"node:fs";/g
  const names = Array.from(code.matchAll(pattern), ([, list]) => list).join()
  return `import{${names}}from"node:fs";${code.replace(pattern, '')}`
}
