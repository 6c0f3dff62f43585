/** Provides the files of the dashboard as bytes: built into the executable, or made from the sources when it runs from them. */

import { basename } from 'node:path'
import { sha256 } from '../kit/sha256.ts'
import page from './page/index.html'

/** A file of the dashboard, and what a browser may do with it. */
export type DashboardFile = {
  readonly type: string
  readonly bytes: Uint8Array<ArrayBuffer>
  readonly gzip: Uint8Array<ArrayBuffer>
  /** Its entity tag. */
  readonly tag: string
  /** Tells whether its name changes with its content, so that a copy never becomes old. */
  readonly isNamedByContent: boolean
}

/** Maps each path, such as `/` and `/chunk-abc.js`, to its file. @throws Error when the sources cannot be built */
export async function dashboardFiles(): Promise<ReadonlyMap<string, DashboardFile>> {
  const files = await (page.files === undefined ? made() : builtIn(page.files))
  return new Map(files.map(([path, type, bytes]) => [path, toFile(path, type, bytes)]))
}

type Made = readonly [path: string, type: string, bytes: Uint8Array<ArrayBuffer>]

function builtIn(files: NonNullable<typeof page.files>): Promise<Made[]> {
  return Promise.all(
    files.map(async ({ path, loader, headers }): Promise<Made> => {
      const bytes = await Bun.file(path).bytes()
      return [loader === 'html' ? '/' : `/${basename(path)}`, headers['content-type'], bytes]
    }),
  )
}

async function made(): Promise<Made[]> {
  const { outputs, success, logs } = await Bun.build({ entrypoints: [page.index], minify: true, target: 'browser' })
  if (!success) throw new Error(`the dashboard cannot be built: ${logs.map(String).join('; ')}`)
  return await Promise.all(
    outputs.map(async (output): Promise<Made> => {
      const path = output.type.startsWith('text/html') ? '/' : `/${basename(output.path)}`
      return [path, output.type, new Uint8Array(await output.arrayBuffer())]
    }),
  )
}

function toFile(path: string, type: string, bytes: Uint8Array<ArrayBuffer>): DashboardFile {
  return { type, bytes, gzip: Bun.gzipSync(bytes), tag: `"${sha256(bytes).slice(0, 32)}"`, isNamedByContent: path !== '/' }
}
