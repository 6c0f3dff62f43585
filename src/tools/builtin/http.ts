/** http: reads a page or posts to one, through the guarded fetch. */

import type { Tool, ToolResult } from '../../runtime/port.ts'
import { refused, text, textOr } from '../input.ts'
import { specs } from '../specs.ts'
import type { Refusal } from './files.ts'

export type Page = {
  readonly ok: true
  readonly url: string
  readonly status: number
  readonly headers: { readonly [name: string]: string }
  readonly body: string
  readonly bytes: number
  readonly truncated: boolean
}

/** The guarded fetch; never rejects. */
export type Get = (
  url: string,
  options: {
    readonly method?: string
    readonly headers?: { readonly [name: string]: string }
    readonly body?: string
    readonly signal?: AbortSignal
  },
) => Promise<Page | Refusal>

export function httpTool({ get }: { readonly get: Get }): Tool {
  return {
    ...specs.http,
    touches: ({ url, method }) => [{ kind: 'url', url: textOr(url, ''), method: textOr(method, 'GET') }],
    async invoke(input, { signal }) {
      const method = text(input, 'method', 'GET')
      const body = input.body === undefined ? undefined : text(input, 'body')
      if (body !== undefined && method === 'GET') return { success: false, output: '', error: 'a GET has no body; use method POST' }
      const headers: { [name: string]: string } = body === undefined ? {} : { 'content-type': typeOf(body) }
      const page = await get(text(input, 'url'), { method, headers, body, signal })
      return page.ok ? shown(page) : refused(page)
    },
  }
}

function typeOf(body: string): string {
  return /^\s*[[{]/.test(body) ? 'application/json' : 'text/plain; charset=utf-8'
}

function shown(page: Page): ToolResult {
  const { status, headers, body, bytes, truncated, url } = page
  const type = headers['content-type'] ?? 'no content type'
  const cut = truncated ? `\n[only the first ${bytes} bytes were read]` : ''
  const content = isText(type, body) ? body + cut : `[binary content, ${bytes} bytes${truncated ? ' or more' : ''}, not shown]`
  const output = `HTTP ${status}, ${type}, ${url}\n\n${content}`
  const metadata = { status, bytes, url }
  if (status < 400) return { success: true, output, metadata }
  return { success: false, output, error: `the server answered ${status}`, metadata }
}

function isText(type: string, body: string): boolean {
  return !/^(image|audio|video|font)\/(?!svg)/i.test(type) && !body.slice(0, 4_096).includes('\0')
}
