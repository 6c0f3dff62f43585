/**
 * Provides the files of the dashboard as bytes: built into the executable, or made from the sources when it runs from them. They are served
 * by the gateway after its guards, with a content security policy that allows no inline code and no other host.
 */

import { basename } from 'node:path'
import page from './page/index.html'

export type StaticFile = { readonly type: string; readonly bytes: Uint8Array; readonly gzip: Uint8Array }

export const contentSecurityPolicy =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'self'; " +
  "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

/** Maps each path, such as `/` and `/chunk-abc.js`, to its file. @throws Error when the sources cannot be built */
export async function dashboardFiles(): Promise<ReadonlyMap<string, StaticFile>> {
  return new Map(await (page.files === undefined ? madeNow() : builtIn()))
}

async function builtIn(): Promise<[string, StaticFile][]> {
  return await Promise.all(
    (page.files ?? []).map(
      async ({ path, loader, headers }): Promise<[string, StaticFile]> => [
        loader === 'html' ? '/' : `/${basename(path)}`,
        toFile(headers['content-type'], await Bun.file(path).bytes()),
      ],
    ),
  )
}

async function madeNow(): Promise<[string, StaticFile][]> {
  const { outputs, success, logs } = await Bun.build({ entrypoints: [page.index], minify: true, target: 'browser' })
  if (!success) throw new Error(`the dashboard cannot be built: ${logs.map(String).join('; ')}`)
  return await Promise.all(
    outputs.map(
      async (output): Promise<[string, StaticFile]> => [
        output.type.startsWith('text/html') ? '/' : `/${basename(output.path)}`,
        toFile(output.type, new Uint8Array(await output.arrayBuffer())),
      ],
    ),
  )
}

function toFile(type: string, bytes: Uint8Array<ArrayBuffer>): StaticFile {
  return { type, bytes, gzip: Bun.gzipSync(bytes) }
}
