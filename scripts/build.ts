#!/usr/bin/env bun
/**
 * Builds the whole program as the single executable dist/braidclaw: `npm run build`. With `--packages DIR` it makes the npm packages of a
 * release there instead: braidclaw and that of this platform; `--platform linux-arm64` names another one and may be repeated.
 */

import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { compile } from './compile.ts'
import { type Platform, platformName, platforms } from './packages/entries.ts'
import { packAll } from './packages/stage.ts'

const root = join(import.meta.dir, '..')

if (import.meta.main) process.exit(await main(Bun.argv.slice(2)))

async function main(args: string[]): Promise<number> {
  const { values } = parseArgs({ args, options: { packages: { type: 'string' }, platform: { type: 'string', multiple: true } } })
  const start = performance.now()
  if (values.packages !== undefined) {
    const chosen = (values.platform ?? [`${process.platform}-${process.arch}`]).map(platformOf)
    const packed = await packAll(resolve(values.packages), { chosen })
    for (const { tarball, bytes, files, sha256 } of packed) console.log(`${tarball}  ${mebibytes(bytes)}  ${files} files  sha256 ${sha256}`)
    console.log(`${Math.round(performance.now() - start)} ms`)
    return 0
  }
  const built = await compile({ entry: join(root, 'src', 'main.ts'), outfile: join(root, 'dist', 'braidclaw') })
  if (!built.ok) {
    console.error(built.message)
    return 1
  }
  console.log(`dist/braidclaw  ${mebibytes(built.bytes)}  ${Math.round(performance.now() - start)} ms`)
  return 0
}

function mebibytes(bytes: number): string {
  return `${(bytes / 1048576).toFixed(1)} MiB`
}

function platformOf(name: string): Platform {
  const found = platforms.find((platform) => platformName(platform) === name)
  if (!found) throw new Error(`no packages are made for ${name}; there are: ${platforms.map(platformName).join(', ')}`)
  return found
}
