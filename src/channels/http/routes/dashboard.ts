/** Serves the page of the dashboard at / with its files. They hold nothing of the home, so they need no token; the page asks for one. */

import type { Context } from 'hono'
import { contentSecurityPolicy, type DashboardFile } from '../../../dashboard/file.ts'
import { HttpError, quiet } from '../../../http/http-error.ts'
import type { GatewayApi } from '../gateway.ts'

type Files = ReadonlyMap<string, DashboardFile>

export function dashboardRoutes(app: GatewayApi): void {
  const state: { files?: Promise<Files> } = {}

  /** Loaded with the first request, because many gateways never show the page; a failure is not remembered. */
  function files(): Promise<Files> {
    state.files ??= import('../../../dashboard/files.ts')
      .then(({ dashboardFiles }) => dashboardFiles())
      .catch((error: unknown) => {
        delete state.files
        throw error
      })
    return state.files
  }

  const answer = async ({ req }: Context) => {
    const file = (await files()).get(req.path)
    if (!file) throw new HttpError(404, 'not_found', `the dashboard has no file ${req.path}; load the page again`)
    return fileResponse(file, req.raw.headers)
  }
  app.get('/', answer)
  app.get('/:file{[\\w-]+\\.(?:js|css|svg)}', answer)
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
