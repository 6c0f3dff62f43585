/** Defines the tool http, which reads a page or posts to a URL through the guarded fetch. */

import { objectSchema } from '../../kit/json.ts'
import type { ToolResult } from '../../runtime/port.ts'
import type { FileRefusal } from '../../workspace/contract.ts'
import { refused, type ToolKind, textOr } from '../tool-kind.ts'

export type WebPage = {
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
) => Promise<WebPage | FileRefusal>

const parameters = objectSchema(
  { url: { type: 'string' }, method: { type: 'string', enum: ['GET', 'POST'] }, body: { type: 'string' }, raw: { type: 'boolean' } },
  'url',
)

export const http = {
  name: 'http',
  description: 'Fetch a public URL, HTML as Markdown unless raw.',
  parameters,
  risk: 'low',
  timeoutMs: 20_000,
  idempotent: false,
  touches: ({ url, method }) => [{ kind: 'url', url: textOr(url, ''), method: textOr(method, 'GET') }],
  async run({ url, method = 'GET', body, raw = false }, { signal }, { get }) {
    if (body !== undefined && method === 'GET') return { success: false, output: '', error: 'a GET has no body; use method POST' }
    const headers: { [name: string]: string } = body === undefined ? {} : { 'content-type': typeOf(body) }
    const page = await get(url, { method, headers, body, signal })
    return page.ok ? shown(page, raw ? undefined : await markdownOf(page)) : refused(page)
  },
} as const satisfies ToolKind<typeof parameters, { readonly get: Get }>

function typeOf(body: string): string {
  return /^\s*[[{]/.test(body) ? 'application/json' : 'text/plain; charset=utf-8'
}

async function markdownOf({ headers, body, url }: WebPage): Promise<string | undefined> {
  const type = headers['content-type'] ?? ''
  if (!/^(text\/html|application\/xhtml\+xml)\b/i.test(type) || !isText(type, body)) return undefined
  return (await import('../page-markdown.ts')).pageMarkdown(body, url)
}

function shown(page: WebPage, markdown?: string): ToolResult {
  const { status, headers, body, bytes, truncated, url } = page
  const type = headers['content-type'] ?? 'no content type'
  const cut = truncated ? `\n[only the first ${bytes} bytes were read]` : ''
  const content =
    markdown !== undefined
      ? markdown + cut
      : isText(type, body)
        ? body + cut
        : `[binary content, ${bytes} bytes${truncated ? ' or more' : ''}, not shown]`
  const form = markdown === undefined ? '' : ', as Markdown'
  const output = `HTTP ${status}, ${type}${form}, ${url}\n\n${content}`
  const metadata = { status, bytes, url }
  if (status < 400) return { success: true, output, metadata }
  return { success: false, output, error: `the server answered ${status}`, metadata }
}

function isText(type: string, body: string): boolean {
  return !/^(image|audio|video|font)\/(?!svg)/i.test(type) && !body.slice(0, 4_096).includes('\0')
}
