/** Defines the tool browser: it opens pages of the web, reads them as an accessibility tree, and clicks, types and sends like a person. */

import { errorText } from '../../kit/errors.ts'
import { type JsonObject, objectSchema } from '../../kit/json.ts'
import { quote } from '../../kit/text.ts'
import type { ToolResult, Touch } from '../../runtime/port.ts'
import type { Workspace } from '../../workspace/contract.ts'
import { done, fail, refused, type ToolKind, textOr } from '../tool-kind.ts'
import type { Page, Pages } from './pages.ts'

const actions = ['open', 'snapshot', 'click', 'type', 'select', 'wait', 'submit', 'download', 'screenshot', 'close'] as const

const parameters = objectSchema(
  {
    action: { type: 'string', enum: actions },
    url: { type: 'string', description: 'for open' },
    page: { type: 'string', description: 'as the last result named it' },
    ref: { type: 'string', description: 'of the element, from the snapshot' },
    text: { type: 'string', description: 'to type, the option to select, or to wait for' },
    path: { type: 'string', description: 'the file that download or screenshot writes' },
  },
  'action',
)

export type BrowserDeps = {
  /** Returns the pages of the conversation; the first use starts Chromium. @throws Error that says why there is no browser */
  readonly pages: () => Promise<Pages>
  readonly files: Pick<Workspace, 'writeBytes'>
}

export const browser = {
  name: 'browser',
  description:
    'Use web pages: open a URL, then act on elements by their ref. Only submit may send (it clicks a button that sends); the other actions read.',
  parameters,
  risk: 'low',
  timeoutMs: 60_000,
  idempotent: false,
  touches,
  async run({ action, url, page: name, ref, text, path }, { callId, signal }, { pages: load, files }) {
    const missing = missingOf(action, { url, page: name, ref, text, path })
    if (missing !== undefined) return fail(`browser: ${action} needs ${quote(missing)}`)
    try {
      const pages = await load()
      if (action === 'open') return await shown(await pages.open(url ?? '', signal))
      const page = pages.find(name ?? '')
      if (typeof page === 'string') return fail(page)
      if (action === 'close') return done(await page.close())
      if (action === 'screenshot' || action === 'download') {
        const bytes = action === 'screenshot' ? await page.screenshot() : await page.download(ref ?? '', signal)
        if (typeof bytes === 'string') return fail(bytes, page.notes().join('\n'))
        const written = files.writeBytes(path ?? '', bytes, { call: callId, tool: 'browser' })
        return written.ok ? done(`wrote ${written.path} (${written.bytes} bytes)`, { bytes: written.bytes }) : refused(written)
      }
      if (action === 'click' || action === 'submit') await page.click(ref ?? '', { signal, sends: action === 'submit' })
      if (action === 'type') await page.type(ref ?? '', text ?? '', signal)
      if (action === 'select') await page.select(ref ?? '', text ?? '', signal)
      if (action === 'wait') await page.wait(text ?? '', signal)
      return await shown(page)
    } catch (error) {
      return fail(`browser: ${action}: ${errorText(error)}`)
    }
  },
} as const satisfies ToolKind<typeof parameters, BrowserDeps>

const needed: { readonly [action in (typeof actions)[number]]: readonly string[] } = {
  open: ['url'],
  snapshot: ['page'],
  click: ['page', 'ref'],
  type: ['page', 'ref', 'text'],
  select: ['page', 'ref', 'text'],
  wait: ['page', 'text'],
  submit: ['page', 'ref'],
  download: ['page', 'ref', 'path'],
  screenshot: ['page', 'path'],
  close: ['page'],
}

function missingOf(action: (typeof actions)[number], input: { readonly [name: string]: string | undefined }): string | undefined {
  return needed[action].find((name) => input[name] === undefined)
}

/**
 * A page's name ends with its origin, so the gate judges the host that an action reaches. What is typed is judged as if it went there as a
 * question, because the page's script may send it.
 */
function touches(input: JsonObject): readonly Touch[] {
  const [action = '', text = '', path = ''] = ['action', 'text', 'path'].map((name) => textOr(input[name], ''))
  if (action === 'open') return [{ kind: 'url', url: textOr(input.url, ''), method: 'GET' }]
  const page = textOr(input.page, '')
  const origin = page.slice(page.indexOf('@') + 1)
  const question = action === 'type' || action === 'select' ? `?${encodeURIComponent(text.slice(0, 4_000).toWellFormed())}` : ''
  const url: Touch = { kind: 'url', url: `${origin}/${question}`, method: action === 'submit' ? 'POST' : 'GET' }
  const writes = action === 'download' || action === 'screenshot'
  return writes ? [url, { kind: 'path', path, access: 'write' }] : [url]
}

async function shown(page: Page): Promise<ToolResult> {
  const { name, title, url, tree } = await page.snapshot()
  const notes = page.notes()
  return done([`page: ${name}`, `title: ${title}`, `url: ${url}`, ...notes, '', tree].join('\n'), { page: name, url })
}
