/** Serves the page of the dashboard and its files: they hold nothing of this home, so they need no token. */

import { once } from '../../kit/once.ts'

/** Returns undefined for a path that is no file of the page. */
export type StaticFiles = (path: string, headers: Headers) => Promise<Response | undefined>

export function dashboardPage(): StaticFiles {
  const files = once(async () => {
    const { contentSecurityPolicy, dashboardFiles } = await import('../../dashboard/files.ts')
    return { csp: contentSecurityPolicy, all: await dashboardFiles() }
  })
  return async (path, asked) => {
    if (!looksStatic(path)) return undefined
    const { csp, all } = await files.get()
    const file = all.get(path)
    if (!file) return undefined
    const zipped = /\bgzip\b/.test(asked.get('accept-encoding') ?? '')
    const headers = {
      'content-type': file.type,
      'content-security-policy': csp,
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
      vary: 'accept-encoding',
      // The names of the other files change with their content.
      'cache-control': path === '/' ? 'no-store' : 'public, max-age=31536000, immutable',
      ...(zipped ? { 'content-encoding': 'gzip' } : {}),
    }
    return new Response(Buffer.from(zipped ? file.gzip : file.bytes), { headers })
  }
}

/** `/` and names with an extension in the first level, except the description of the API. */
function looksStatic(path: string): boolean {
  return /^\/(?:[\w-]+\.\w+)?$/.test(path) && path !== '/openapi.json'
}
