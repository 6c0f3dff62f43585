#!/usr/bin/env bun
/** Builds the whole program as the single executable dist/braidclaw: `npm run build`. */

import { join } from 'node:path'
import { compile } from './compile.ts'

const root = join(import.meta.dir, '..')

if (import.meta.main) process.exit(await main())

async function main(): Promise<number> {
  const start = performance.now()
  const outfile = join(root, 'dist', 'braidclaw')
  const built = await compile({ entry: join(root, 'src', 'main.ts'), outfile })
  if (!built.ok) {
    console.error(built.message)
    return 1
  }
  console.log(`dist/braidclaw  ${(built.bytes / 1048576).toFixed(1)} MiB  ${Math.round(performance.now() - start)} ms`)
  return 0
}
