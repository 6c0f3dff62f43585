/** Answers the page of the dashboard and its files. They hold no data, so they need no token; the page asks for one. */

import type { Context } from 'hono'
import { HttpError, quiet } from '../http/http-error.ts'
import type { DashboardFile } from './files.ts'

type Files = ReadonlyMap<string, DashboardFile>

/** The paths of its files. */
export const pageFiles = '/:file{[\\w-]+\\.(?:js|css|svg)}'

/** Returns the handler of `/` and of the page's files, for any server that has them. */
export function dashboardPage(): (context: Context) => Promise<Response> {
  const state: { files?: Promise<Files> } = {}

  /** Loaded with the first request, because many servers never show the page; a failure is not remembered. */
  function files(): Promise<Files> {
    state.files ??= import('./files.ts')
      .then(({ dashboardFiles }) => dashboardFiles())
      .catch((error: unknown) => {
        delete state.files
        throw error
      })
    return state.files
  }

  return async ({ req }) => {
    const file = (await files()).get(req.path)
    if (!file) throw new HttpError(404, 'not_found', `the dashboard has no file ${req.path}; load the page again`)
    return fileResponse(file, req.raw.headers)
  }
}

function fileResponse({ type, tag, isNamedByContent, bytes, gzip }: DashboardFile, asked: Headers): Response {
  const headers = {
    ...quiet,
    'content-security-policy': contentSecurityPolicy,
    'cache-control': isNamedByContent ? 'public, max-age=31536000, immutable' : 'no-cache',
    etag: tag,
    vary: 'accept-encoding',
  }
  if ((asked.get('if-none-match') ?? '').split(/\s*,\s*/).includes(tag)) return new Response(null, { status: 304, headers })
  const isZipped = /\bgzip\b/.test(asked.get('accept-encoding') ?? '')
  return new Response(isZipped ? gzip : bytes, {
    headers: { ...headers, 'content-type': type, ...(isZipped ? { 'content-encoding': 'gzip' } : {}) },
  })
}

/** No inline code, no other host, no frame, and no text that becomes code or markup. */
const contentSecurityPolicy =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'self'; " +
  "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
